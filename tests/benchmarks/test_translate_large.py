"""The benchmark against CTranslate2: all systems write equally many tokens."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import translate_large
from benchmarks.ctranslate2_peer import Peer
from benchmarks.translate_large import PEER, main, ours, parse, table_rows

TOY = ["--channels", "8", "--entries", "60", "--selected", "20", "--sentences", "3", "--tokens", "4"]
TOY += ["--precisions", "float32", "--beam-sizes", "2", "--rounds", "1"]


def test_every_system_writes_as_many_tokens_as_the_source_has() -> None:
    """The weights are random, so lengths are forced, also with selected tokens; EOS counts."""
    options = parse(TOY)
    tokens = {name: work(2) for name, work in ours(options).items()}
    assert tokens == {"ours float32": 15, "ours float32, 20 selected": 15}


def test_it_prints_and_writes_all_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stub plays the peer, as if CTranslate2 were installed."""
    calls: list[tuple[int, int, int]] = []

    class Played:
        def __init__(self, folder: Path, entries: int, threads: int) -> None:
            self.words = [f"w{i}" for i in range(entries)]

        def translate(self, sentences: list[list[str]], beam_size: int, length: int) -> float:
            calls.append((len(sentences), beam_size, length))
            return float(len(sentences) * length)

    monkeypatch.setattr(translate_large, "Peer", Played)
    monkeypatch.setattr(translate_large, "has_ctranslate2", lambda: True)
    main([*TOY, "--json", str(tmp_path / "speed.json")])
    content = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    names = ["ours float32", "ours float32, 20 selected", PEER]
    assert [row["system"] for row in content["results"]] == names
    printed = capsys.readouterr().out
    assert all(f"| 2, {name} |" in printed for name in names)
    assert set(calls) == {(3, 2, 4)}
    assert content["options"]["entries"] == 60


def test_the_ratio_is_to_the_peer_with_the_same_beam() -> None:
    """Without a peer there is no ratio."""

    def result(beam_size: int, system: str, median: float) -> dict[str, Any]:
        speed = {"median": median, "lowest": median - 1, "highest": median + 1}
        return {"beam_size": beam_size, "system": system, "tokens": {"per_processor_second": speed}}

    results = [result(1, "ours", 30.0), result(1, PEER, 20.0), result(5, "ours", 8.0), result(5, PEER, 4.0)]
    assert [row[-1] for row in table_rows(results)] == [1.5, 1.0, 2.0, 1.0]
    assert [row[-1] for row in table_rows(results[:1])] == [""]


def test_ctranslate2_translates_to_the_length(tmp_path: Path) -> None:
    """Tests the real peer, if it is installed."""
    pytest.importorskip("ctranslate2")
    peer = Peer(tmp_path / "model", entries=40, threads=1)
    assert peer.translate([["w1", "w2", "w3"], ["w4", "w5", "w6"]], beam_size=2, length=5) == 10
