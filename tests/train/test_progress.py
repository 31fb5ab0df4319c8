import io
import json
import time
from pathlib import Path

import pytest

from convs2s.train import progress as module
from convs2s.train.loop import EpochReport, UpdateReport
from convs2s.train.progress import Progress, ProgressFile

RECORD = {
    "epoch": 1, "updates": 2, "learning_rate": 0.25, "training_loss": 3.0, "validation_perplexity": 9.5
}  # fmt: skip


def report(update: int, batches: int = 2, selected: int | None = None) -> UpdateReport:
    return UpdateReport(1, update, 3.0, 0.5, 0.25, 100, 8, batches, selected)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, that tests set."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_speed_is_that_of_updates_without_validation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Validation may take half an epoch's time; each epoch has its own speed."""
    progress = Progress(ProgressFile(tmp_path / "p.json", 9, None))
    for seconds, wanted in ((4.0, "8.0 s, 25 target"), (1.0, "2.0 s, 100 target")):
        for number in (1, 2):
            progress.update(report(number), number, seconds)
        progress.epoch(EpochReport(RECORD, is_best=False), seconds=50.0)
        assert f"perplexity 9.500, training {wanted} tokens/s, validation 50.0 s\n" in capsys.readouterr().err


def test_the_bar_has_room_in_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If text filled the line, the bar would have one character and show nothing."""
    terminal = io.StringIO()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    progress = Progress(ProgressFile(tmp_path / "p.json", 99, None))
    progress.update(UpdateReport(12, 9, 3.0, 0.5, 0.25, 12_345, 8, 2670, None), 1335, 1.0)
    progress.epoch(EpochReport(RECORD, is_best=False), seconds=1.0)
    bar = terminal.getvalue().split("\n", maxsplit=1)[0].split("\r")[-1]
    assert len(bar) < 80
    assert len(bar.split("|")[1]) >= 10
    assert bar.startswith("epoch 12:  50%|")
    assert bar.endswith(", loss 3.000, 12,345 tokens/s]")


def test_an_epoch_interrupted_during_validation_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process that resumes makes no update in this epoch, so it has no speed to report."""
    progress = Progress(ProgressFile(tmp_path / "p.json", 9, None))
    progress.epoch(EpochReport(RECORD, is_best=False), seconds=50.0)
    assert capsys.readouterr().err.endswith("perplexity 9.500, training 0.0 s, validation 50.0 s\n")
    assert not (tmp_path / "p.json").exists()


def test_the_file_has_the_values_of_the_bar(tmp_path: Path, clock: list[float]) -> None:
    """Programs need not parse the bar: the file has the first of four updates, then the end of the epoch."""
    path = tmp_path / "progress.json"
    progress = Progress(ProgressFile(path, 9, perplexity=None))
    progress.update(report(41, batches=4), 1, 0.5)
    wanted = {
        "epoch": 1, "max_epochs": 9, "update": 1, "updates": 4, "loss": 3.0, "gradient_norm": 0.5,
        "learning_rate": 0.25, "tokens_per_second": 200.0, "seconds_left": 1.5, "validation_perplexity": None,
    }  # fmt: skip
    assert json.loads(path.read_text()) == wanted
    progress.update(report(42, batches=4), 4, 1.5)
    progress.epoch(EpochReport(RECORD, is_best=False), seconds=50.0)
    wanted |= {"update": 4, "tokens_per_second": 100.0, "seconds_left": 0.0, "validation_perplexity": 9.5}
    assert json.loads(path.read_text()) == wanted
    assert [found.name for found in tmp_path.iterdir()] == ["progress.json"]


def test_the_file_is_written_at_most_once_a_second(tmp_path: Path, clock: list[float]) -> None:
    """This holds however fast updates are; a resumed training has the perplexity of the last epoch."""
    path = tmp_path / "progress.json"
    file = ProgressFile(path, 9, perplexity=7.5)
    seen = []
    for number in range(1, 8):
        file.update(report(number, batches=9), number, 1.0, 1.0)
        seen.append(json.loads(path.read_text())["update"])
        clock[0] += 0.4
    assert seen == [1, 1, 1, 4, 4, 4, 7]
    assert json.loads(path.read_text())["validation_perplexity"] == 7.5


def test_the_file_costs_nothing_measurable(tmp_path: Path) -> None:
    """An update that is not written only reads the clock, which takes less than a microsecond."""
    file = ProgressFile(tmp_path / "progress.json", 9, None)
    file.next = float("inf")
    begin = time.perf_counter()
    for number in range(1000):
        file.update(report(1), number, 1.0, 1.0)
    assert (time.perf_counter() - begin) / 1000 < 1e-3


def test_selected_entries_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are in the epoch's line, and nowhere without vocabulary selection."""
    progress = Progress(ProgressFile(tmp_path / "p.json", 9, None))
    progress.update(report(1, selected=1234), 1, 0.5)
    progress.epoch(EpochReport(RECORD | {"selected_types": 1234.4}, is_best=True), seconds=50.0)
    assert "perplexity 9.500 (best), 1,234 vocabulary entries selected, training" in capsys.readouterr().err
