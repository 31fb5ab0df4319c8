"""Updates and epochs leave no files open; `python -m tests.faults.leaks` watches a long training."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from convs2s.train import run
from convs2s.train.loop import EpochReport, UpdateReport
from convs2s.train.training import Training
from tests.train.test_run import in_process, prepare


def test_descriptors_do_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints, curves and progress are written throughout; over days, leaks would exhaust the limit."""
    train, seen = run.train, list[int]()

    def watched(training: Training) -> Iterator[UpdateReport | EpochReport]:
        for report in train(training):
            yield report
            seen.append(psutil.Process().num_fds())

    monkeypatch.setattr(run, "train", watched)
    folder = tmp_path / "a"
    in_process(folder, prepare(folder, pairs=40, max_epochs=3, checkpoint_updates=2), monkeypatch)
    assert len(seen) == 3 * (5 + 1)
    assert max(seen) == seen[0]
