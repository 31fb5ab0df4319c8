"""The comparison of aligners: alternating rounds, and the figures compared."""

import re
from pathlib import Path

import pytest

from benchmarks import align

LINKS = {"builtin": "0-0 1-1\n0-0\n", "exact": "0-0\n0-0\n"}


def test_aligners_take_turns_and_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand: 2 of 3 links are shared, so F1 is 0.8; medians of 2, 3 and 10 seconds after a warm-up."""
    order: list[str] = []
    seconds = iter([99.0, 99.0, 2.0, 1.0, 10.0, 1.0, 3.0, 1.0])

    def measure(name: str, _: object, out: Path) -> dict[str, float]:
        order.append(name)
        out.write_text(LINKS[name], encoding="utf-8")
        return {"seconds": next(seconds), "MB": 5.0}

    monkeypatch.setattr(align, "measure", measure)
    monkeypatch.setattr(align, "available", lambda: ["builtin", "exact"])
    text = tmp_path / "text"
    text.write_text("a b\nc\n", encoding="utf-8")
    align.main([f"--source={text}", f"--target={text}", "--rounds=3"])
    assert order == ["builtin", "exact"] * 4
    header, builtin, exact = (re.split("  +", line.strip()) for line in capsys.readouterr().out.splitlines())
    assert header == ["seconds", "MB", "F1 with builtin", "F1 with exact", "equal entries"]
    assert builtin[0] == "builtin"
    assert list(map(float, builtin[1:])) == [3.0, 5.0, 1.0, 0.8, 1.0]
    assert exact[:2] == ["exact", "1.0"]


def test_each_aligner_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Its time and memory can then be measured apart; the process writes the links."""
    text = tmp_path / "text"
    text.write_text("a b\nc\n", encoding="utf-8")
    options = align.parse([f"--source={text}", f"--target={text}", "--iterations=1"])
    found = align.measure("builtin", options, tmp_path / "links")
    assert set(found) == {"seconds", "CPU seconds", "MB"}
    assert min(found.values()) > 0
    assert len((tmp_path / "links").read_text(encoding="utf-8").split("\n")) == 3


def test_the_error_rate_is_one_minus_twice_the_common_links_over_all_links() -> None:
    """Over both pairs, 1 link is common to the 3 found and the 2 true ones; repeats do not count."""
    found, true = [[(0, 0), (1, 1), (0, 0)], [(0, 1)]], [[(0, 0)], [(1, 0)]]
    assert align.alignment_error_rate(found, true) == pytest.approx(1 - 2 * 1 / 5)
    assert align.alignment_error_rate([[]], [[]]) == 0.0
    with pytest.raises(ValueError, match="shorter"):
        align.alignment_error_rate([[], []], [[]])
