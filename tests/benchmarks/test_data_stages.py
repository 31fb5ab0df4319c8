"""The benchmark of the data stages: its corpus, one small run, and the extrapolation."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.corpus import sample
from benchmarks.data_stages import PAPER_PAIRS, Cost, extrapolate, main
from convs2s.base.files import read_json, write_json


def test_pairs_have_the_lengths_and_the_vocabulary_of_real_text() -> None:
    """About 26 words; half of the words occur once; names are the same on both sides."""
    pairs = list(sample(2000, seed=3))
    assert 20 < np.mean([len(source.split()) for source, _ in pairs]) < 30
    words = Counter(word for source, _ in pairs for word in source.split())
    assert 0.4 < sum(count == 1 for count in words.values()) / len(words) < 0.8
    assert pairs == list(sample(2000, seed=3))
    shared = [set(source.split()) & set(target.split()) for source, target in pairs]
    assert np.mean([bool(names) for names in shared]) > 0.99


@pytest.mark.parametrize(("exponent", "constant"), [(1.0, 0.0), (0.7, 0.0), (1.2, 0.0), (1.0, 5.0)])
def test_extrapolation_is_exact_for_a_power_law_and_for_a_line(exponent: float, constant: float) -> None:
    """Of a concave curve, the line is the larger, so what is missing is rather overestimated."""
    sizes = np.array([100_000, 200_000, 400_000])
    law = constant + sizes**exponent / 1e5
    found, value, error = extrapolate(sizes, law)
    wanted = constant + PAPER_PAIRS**exponent / 1e5
    if constant == 0.0:
        assert found == pytest.approx(exponent)
    if exponent >= 1.0:
        assert (value, error) == pytest.approx((wanted, 0.0), abs=1e-6)
    else:
        assert value > wanted
        assert error > 0.0


def test_a_stage_is_measured_and_added_to_the_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three sizes, two of them measured earlier, give an extrapolation."""
    results = tmp_path / "results.json"
    earlier = [{"stage": "tokenize", "pairs": pairs, **asdict(Cost(1, 1, 1, 1))} for pairs in (30, 60)]
    write_json(results, {"rows": earlier})
    main(["--pairs", "90", "--last=tokenize", f"--folder={tmp_path}", f"--results={results}"])
    rows = read_json(results)["rows"]
    assert rows[:2] == earlier
    assert [(row["stage"], row["pairs"]) for row in rows[2:]] == [("tokenize", 90)]
    assert min(rows[2][quantity] for quantity in ("seconds", "cpu_seconds", "memory", "disk")) > 0
    assert capsys.readouterr().out.count("| tokenize | seconds |") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
