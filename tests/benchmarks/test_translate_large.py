"""The benchmark against CTranslate2: all systems write equally many tokens."""

import json
from pathlib import Path

import pytest

from benchmarks import translate_large
from benchmarks.ctranslate2_peer import Peer
from benchmarks.translate_large import PEER, main, ours, parse, table_rows

TOY = ["--channels", "8", "--entries", "60", "--selected", "20", "--sentences", "3", "--tokens", "4"]
TOY += ["--precisions", "float32", "--beam-sizes", "2", "--rounds", "1"]


def test_it_prints_and_writes_all_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stub plays the peer, as if CTranslate2 were installed; ratios are to it.

    The weights are random, so lengths are forced, also with selected tokens; EOS counts.
    """
    tokens = {name: work(2) for name, work in ours(parse(TOY)).items()}
    assert tokens == {"ours float32": 15, "ours float32, 20 selected": 15}
    monkeypatch.setattr(translate_large, "theirs", lambda *_: {PEER: lambda beam_size: 6.0 * beam_size})
    monkeypatch.setattr(translate_large, "has_ctranslate2", lambda: True)
    main([*TOY, "--json", str(tmp_path / "speed.json")])
    content = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    names = ["ours float32", "ours float32, 20 selected", PEER]
    assert [row["system"] for row in content["results"]] == names
    rows = [[cell.strip() for cell in line.split("|")] for line in capsys.readouterr().out.splitlines()[-3:]]
    assert [row[1] for row in rows] == [f"2, {name}" for name in names]
    speeds = [row["tokens"]["per_processor_second"]["median"] for row in content["results"]]
    assert [row[-1] for row in table_rows(content["results"])] == [speed / speeds[-1] for speed in speeds]
    assert content["options"]["entries"] == 60


def test_ctranslate2_translates_to_the_length(tmp_path: Path) -> None:
    """Tests the real peer, if it is installed."""
    pytest.importorskip("ctranslate2")
    peer = Peer(tmp_path / "model", entries=40, threads=1)
    assert peer.translate([["w1", "w2", "w3"], ["w4", "w5", "w6"]], beam_size=2, length=5) == 10
