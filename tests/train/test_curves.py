"""The curves of a training, as tables and as event files."""

import sys
from pathlib import Path

import pytest

from convs2s.train.running.curves import Events, write_curves
from convs2s.train.training import Record

EPOCH: Record = {"updates": 73, "validation_perplexity": 9.5}
POINTS: list[Record] = [
    {"update": 50, "loss": 3.25, "gradient_norm": 0.1, "learning_rate": 0.25},
    {"update": 100, "loss": 2.0, "gradient_norm": 1 / 3, "learning_rate": 0.025},
]


def test_each_curve_is_a_table(tmp_path: Path) -> None:
    """A curve without points has no file, so that no reader meets an empty table."""
    write_curves(tmp_path, POINTS, [])
    tables = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*.tsv")}
    assert tables == {
        "train/gradient_norm.tsv": "step\tgradient_norm\n50\t0.1\n100\t0.3333333333333333\n",
        "train/learning_rate.tsv": "step\tlearning_rate\n50\t0.25\n100\t0.025\n",
        "train/loss.tsv": "step\tloss\n50\t3.25\n100\t2.0\n",
    }
    write_curves(tmp_path, [], [EPOCH])
    (path,) = tmp_path.rglob("*.tsv")
    assert path.read_text() == "step\tperplexity\n73\t9.5\n"


def test_event_files_have_the_points_of_the_curves(tmp_path: Path) -> None:
    """TensorBoard's own library must read them. A resumed training forgets later points."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    Events(tmp_path).add(POINTS, [])
    again = Events(tmp_path)
    again.add(POINTS[:1], [EPOCH])
    events = reader.EventAccumulator(str(tmp_path)).Reload()
    tags = events.Tags()["scalars"]
    assert {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in tags} == {
        "train/gradient_norm": [(50, pytest.approx(0.1))],
        "train/learning_rate": [(50, 0.25)],
        "train/loss": [(50, 3.25)],
        "valid/perplexity": [(73, 9.5)],
    }


def test_event_files_need_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that was to be watched should say so before it starts."""
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"run\.tensorboard: expected the package tensorboard"):
        Events(tmp_path)
