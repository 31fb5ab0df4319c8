"""How concurrent stages share the machine; nothing is run here."""

import os
from dataclasses import replace
from typing import Any

import pytest

from pipelines.flows import run_stages
from pipelines.flows.form import RunParams
from pipelines.flows.graph import Stage
from pipelines.flows.run_stages import StagesRun
from tests.flows import toy


def stage(name: str, gpus: int = 0) -> Stage:
    """Return a stage without parents."""
    return Stage(name, "python", frozenset(), gpus, 1.0, (), name, toy.ROOT)


def threads(
    *spaces: list[Stage], fresh: tuple[str, ...] = (), gpus: tuple[int, ...] = (), **params: Any
) -> str | None:
    """Return the number of threads given to the first stage of a run on a machine with 12 cores."""
    rows = [[replace(s, label=str(row)) for s in stages] for row, stages in enumerate(spaces)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(12)), raising=False)
        patch.setattr(run_stages, "visible_gpus", lambda: [*gpus])
        patch.setattr(run_stages, "up_to_date", lambda _: set(fresh))
        run = StagesRun(RunParams(**params), [s for row in rows for s in row])
        return run.environment(rows[0][0], gpus[:1]).get("OMP_NUM_THREADS")


SEEDS = [stage(f"train@{seed}", 1) for seed in range(1, 5)]
PAIR = [stage("train@1", 2), stage("train@2", 2)]  # of two processes each


def test_stages_of_one_kind_that_run_at_once_divide_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trainings with a thread per core are slower than one after the other.

    A stage that runs alone has all cores, as under `dvc repro`, so that the default run gives the same bytes.
    """
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads(SEEDS) == "6"  # two at once by default
    assert threads(SEEDS, parallel=99) == "3"  # more slots than stages
    assert threads(SEEDS[:1], SEEDS[1:2]) == "6"  # rows of a sweep
    assert threads(PAIR) == "3"
    assert threads(PAIR, gpus=(0, 1, 2, 3), parallel=1) == "3"  # as many run as there are GPUs for
    assert threads([SEEDS[0], stage("align")], parallel=8) is None
    assert threads(SEEDS, parallel=1) is None
    assert threads(SEEDS[:2], fresh=("train@2",)) is None
    assert threads(SEEDS, remote="all") is None  # each trains on another machine
    assert threads(SEEDS[:1], SEEDS[:1]) is None  # rows of a sweep that share it
    assert threads(PAIR[:1]) is None  # a training divides them itself
    monkeypatch.setenv("OMP_NUM_THREADS", "5")  # the user knows what else the machine has to do
    assert threads(SEEDS) == "5"
