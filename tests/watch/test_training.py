"""What people and programs see of a training while it runs."""

import io
import json
import sys
from pathlib import Path
from weakref import WeakSet

import pytest

from convs2s.train.loop import UpdateReport
from convs2s.watch import training
from convs2s.watch.progress_bar import ProgressBar
from convs2s.watch.training import Curves, Numbers, Progress

RECORD: Numbers = {
    "epoch": 1, "updates": 2, "learning_rate": 0.25, "training_loss": 3.0, "validation_perplexity": 9.5
}  # fmt: skip


def report(batch: int, batches: int = 2) -> Numbers:
    return vars(UpdateReport(1, 40 + batch, 3.0, 0.5, 0.25, 100, 8, batch, batches, None, is_last=False))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, that tests set."""
    now = [100.0]
    monkeypatch.setattr(training.time, "monotonic", lambda: now[0])
    return now


def test_speed_is_that_of_updates_without_validation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each epoch has its own. One interrupted during validation has no update here, so no speed either."""
    progress = Progress(tmp_path / "p.json", 9, None)
    for seconds, expected in ((4.0, "8.0 s, 25 target"), (1.0, "2.0 s, 100 target")):
        for batch in (1, 2):
            progress.add_update(report(batch), seconds)
        progress.add_epoch(RECORD, False, 50.0)
        assert (
            f"perplexity 9.500, training {expected} tokens/s, validation 50.0 s\n" in capsys.readouterr().err
        )
    progress.add_epoch({**RECORD, "selected_entries": 1234.4}, True, 50.0)
    expected = "9.500 (best), 1,234 vocabulary entries selected, training 0.0 s, validation 50.0 s\n"
    assert capsys.readouterr().err.endswith(expected)


def test_the_bar_has_room_in_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If text filled the line, the bar would have one character and show nothing."""
    terminal = io.StringIO()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setattr(ProgressBar, "_instances", WeakSet())  # below another test's bar, it has another line
    progress = Progress(tmp_path / "p.json", 99, None)
    progress.add_update({**report(1335, 2670), "epoch": 12, "target_tokens": 12_345}, 1.0)
    progress.add_epoch(RECORD, False, 1.0)
    bar = terminal.getvalue().split("\n", maxsplit=1)[0].split("\r")[-1]
    assert len(bar) < 80
    assert bar.startswith("epoch 12:  50%|")
    assert len(bar.split("|")[1]) >= 10
    assert bar.endswith(", loss 3.000, 12,345 tokens/s]")


def test_the_file_has_the_values_of_the_bar(tmp_path: Path, clock: list[float]) -> None:
    """Programs need not parse the bar; within a second, the file is not written again.

    The first update, which may compile code, says nothing about the time that the others take.
    """
    path = tmp_path / "progress.json"
    progress = Progress(path, 9, perplexity=None)
    progress.add_update(report(1, batches=5), 4.0)
    assert not path.exists()
    progress.add_update(report(2, batches=5), 1.0)
    expected = {
        "epoch": 1, "max_epochs": 9, "update": 2, "updates": 5, "loss": 3.0, "gradient_norm": 0.5,
        "learning_rate": 0.25, "tokens_per_second": 40.0, "seconds_left": 3.0, "validation_perplexity": None,
    }  # fmt: skip
    assert json.loads(path.read_text()) == expected
    clock[0] += 0.9
    progress.add_update(report(3, batches=5), 2.0)
    assert json.loads(path.read_text()) == expected
    clock[0] += 0.2
    progress.add_update(report(4, batches=5), 1.5)
    assert json.loads(path.read_text())["seconds_left"] == 1.5  # the mean of 1, 2 and 1.5
    progress.add_update(report(5, batches=5), 1.5)
    progress.add_epoch(RECORD, False, 50.0)
    expected |= {"update": 5, "tokens_per_second": 50.0, "seconds_left": 0.0, "validation_perplexity": 9.5}
    assert json.loads(path.read_text()) == expected
    assert [found.name for found in tmp_path.iterdir()] == ["progress.json"]


def test_a_resumed_training_forgets_points_after_its_checkpoint(tmp_path: Path) -> None:
    """They are recomputed; earlier points are in the checkpoint's state."""
    points = [
        {"update": 50, "loss": 3.25, "gradient_norm": 0.1, "learning_rate": 0.25},
        {"update": 100, "loss": 2.0, "gradient_norm": 1 / 3, "learning_rate": 0.025},
    ]
    Curves(tmp_path / "curves", points, [])
    again = Curves(tmp_path / "curves", points[:1], [])
    again.add_point(points[1])
    again.add_epoch({**RECORD, "updates": 73})
    tables = {str(p.relative_to(again.folder)): p.read_text() for p in again.folder.rglob("*.tsv")}
    assert tables == {
        "train/gradient_norm.tsv": "step\tgradient_norm\n50\t0.1\n100\t0.3333333333333333\n",
        "train/learning_rate.tsv": "step\tlearning_rate\n50\t0.25\n100\t0.025\n",
        "train/loss.tsv": "step\tloss\n50\t3.25\n100\t2.0\n",
        "valid/perplexity.tsv": "step\tperplexity\n73\t9.5\n",
    }


def test_event_files_have_the_points_of_the_curves(tmp_path: Path) -> None:
    """As the library of TensorBoard reads them; a resumed training forgets later points."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    point = {"update": 50, "loss": 3.25, "gradient_norm": 0.5, "learning_rate": 0.25}
    killed = Curves(tmp_path / "curves", [point, {**point, "update": 100}], [], tmp_path / "events")
    assert killed.events is not None
    killed.events.close()
    again = Curves(tmp_path / "curves", [point], [], tmp_path / "events")
    again.add_epoch({**RECORD, "updates": 73})
    events = reader.EventAccumulator(str(tmp_path / "events")).Reload()
    tags = events.Tags()["scalars"]
    assert {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in tags} == {
        "train/gradient_norm": [(50, 0.5)],
        "train/learning_rate": [(50, 0.25)],
        "train/loss": [(50, 3.25)],
        "valid/perplexity": [(73, 9.5)],
    }


def test_event_files_need_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that was to be watched should say so before it starts."""
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(
        ValueError, match=r"run.tensorboard: expected the package tensorboard, found none\. Run"
    ):
        Curves(tmp_path / "curves", [], [], tmp_path / "events")
