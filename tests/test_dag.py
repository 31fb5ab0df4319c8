"""The drawing of the pipeline for a terminal."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipelines.dag import draw_stages
from tests.pipeline import ROOT, bare_repository


def test_it_fits_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dvc dag` has a box per seed and an arrow per dependency, and needs more than 700 columns."""
    monkeypatch.chdir(bare_repository(tmp_path, {"seeds": [1, 2, 3], "evaluate.ensembles": ["all"]}))
    drawing = draw_stages()
    boxes = re.findall(r"\| ([\w-]+) \|", drawing)
    assert sorted(boxes) == sorted(YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"])
    assert max(map(len, drawing.split("\n"))) <= 80
    order = ["download", "filter", "vocabulary", "train", "translate", "evaluate", "package"]
    assert sorted(order, key=boxes.index) == order
