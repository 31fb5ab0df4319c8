"""Training progress in the UI, from the file that the stage writes."""

import json
import os
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pipelines.flows import progress
from pipelines.flows.graph import Stage
from pipelines.flows.progress import description, percentage, show_progress

HALF = {
    "epoch": 2, "max_epochs": 4, "update": 50, "updates": 100, "loss": 2.4831, "gradient_norm": 0.875,
    "learning_rate": 0.25, "tokens_per_second": 11800.6, "seconds_left": 75.2, "validation_perplexity": None,
}  # fmt: skip


def test_the_percentage_is_of_all_epochs_and_the_text_begins_with_the_most_important() -> None:
    """The first update of the first epoch is close to 0, the last update of the last epoch is 100."""
    assert percentage(HALF) == 37.5
    assert percentage(HALF | {"epoch": 4, "update": 100}) == 100.0
    assert percentage(HALF | {"epoch": 1, "update": 0, "updates": 0}) == 0.0
    text = "epoch 2 of 4, 0:01:15 left in it, 11,801 tokens/s, loss 2.483, 50 of 100 updates"
    assert description(HALF) == text  # there is no perplexity before the first validation
    later = description(HALF | {"validation_perplexity": 31.391})
    assert later == f"{text}, validation perplexity 31.391"


def test_the_artifact_follows_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of an earlier training is ignored, and no error of the server stops the stage."""
    created, shown = iter([ConnectionError(), uuid4()]), list[float]()

    def create(*_: Any) -> Any:
        if isinstance(made := next(created), Exception):
            raise made
        return made

    monkeypatch.setattr(progress, "create_progress_artifact", create)
    monkeypatch.setattr(progress, "update_progress_artifact", lambda _, done, __: shown.append(done))
    monkeypatch.setattr(progress, "SECONDS", 0.01)
    path = tmp_path / "work" / "progress.json"
    path.parent.mkdir()
    path.write_text(json.dumps(HALF))
    os.utime(path, (1, 1))
    stage = Stage("train@1", "", frozenset(), 1, 1.0, (), "work", {}, True, "", tmp_path)
    with show_progress(stage):
        time.sleep(0.1)
        assert shown == []
        for update in (50, 60, 70):
            path.write_text(json.dumps(HALF | {"update": update}))
            time.sleep(0.1 * (update < 70))
    assert shown == [37.5, 40.0, 42.5]
