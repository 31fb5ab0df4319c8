from pathlib import Path

from convs2s.train.curves import Curves
from convs2s.train.training import Record, State

POINTS: list[Record] = [
    {"update": 50, "loss": 3.25, "gradient_norm": 0.1, "learning_rate": 0.25},
    {"update": 100, "loss": 2.0, "gradient_norm": 1 / 3, "learning_rate": 0.025},
]
EPOCH: Record = {"epoch": 1, "updates": 73, "validation_perplexity": 9.5}


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*.tsv"))}


WHOLE = {
    "train/gradient_norm.tsv": "step\tgradient_norm\n50\t0.1\n100\t0.3333333333333333\n",
    "train/learning_rate.tsv": "step\tlearning_rate\n50\t0.25\n100\t0.025\n",
    "train/loss.tsv": "step\tloss\n50\t3.25\n100\t2.0\n",
    "valid/perplexity.tsv": "step\tperplexity\n73\t9.5\n",
}


def test_points_are_added_during_training(tmp_path: Path) -> None:
    """The tables can be plotted at any time; their bytes are those that DVC has cached so far."""
    curves = Curves(tmp_path / "curves", State())
    curves.add_point(POINTS[0])
    assert contents(tmp_path / "curves")["train/loss.tsv"] == "step\tloss\n50\t3.25\n"
    curves.add_epoch(EPOCH)
    curves.add_point(POINTS[1])
    assert contents(tmp_path / "curves") == WHOLE


def test_a_resumed_training_forgets_points_after_its_checkpoint(tmp_path: Path) -> None:
    """They are recomputed; earlier points are in the checkpoint's state."""
    old = Curves(tmp_path / "curves", State())
    for point in POINTS:
        old.add_point(point)
    new = Curves(tmp_path / "curves", State(curve=[POINTS[0]], epochs=[EPOCH]))
    new.add_point(POINTS[1])
    assert contents(tmp_path / "curves") == WHOLE
