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


def stage(name: str, gpus: int = 0, signature: str = "") -> Stage:
    """Return a stage without parents."""
    return Stage(name, "", frozenset(), gpus, 1.0, (), None, {}, True, signature or name, toy.ROOT)


def threads(
    *spaces: list[Stage], fresh: tuple[str, ...] = (), gpus: tuple[int, ...] = (), **params: Any
) -> str | None:
    """Return the number of threads given to the first stage of a run on a machine with 12 cores."""
    rows = [[replace(one, label=str(row)) for one in stages] for row, stages in enumerate(spaces)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(12)), raising=False)
        patch.setattr(run_stages, "choose_gpus", lambda _: [*gpus])
        patch.setattr(run_stages, "up_to_date", lambda _: set(fresh))
        run = StagesRun(RunParams(**params), [one for row in rows for one in row])
        return run.environment(rows[0][0], gpus[:1]).get("OMP_NUM_THREADS")


def test_concurrent_stages_divide_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trainings with a thread per core are slower than one after the other."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    seeds = [stage(f"train@{seed}", 1) for seed in range(1, 5)]
    assert threads(seeds) == "6"  # two at once by default
    assert threads(seeds, parallel=3) == "4"
    assert threads(seeds, parallel=99) == "3"  # more slots than stages
    many = [stage(f"train@{seed}", 1) for seed in range(50)]
    assert threads(many, parallel=50) == "1"
    assert threads([stage("tokenize@train"), stage("tokenize@valid")]) == "6"


def test_a_stage_that_runs_alone_has_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under `dvc repro`, so that the default run gives the same bytes."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    seeds = [stage("train@1", 1), stage("train@2", 1)]
    assert threads([seeds[0], stage("align")], parallel=8) is None
    assert threads(seeds, parallel=1) is None
    assert threads(seeds, fresh=("train@2",)) is None
    assert threads(seeds, fresh=("train@2",), force=True) == "6"
    assert threads(seeds, remote="all") is None  # each trains on another machine


def test_rows_of_a_sweep_divide_the_cores_unless_they_share_the_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shared stage runs only once."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads([stage("train@1", 1, "a")], [stage("train@1", 1, "b")]) == "6"
    assert threads([stage("train@1", 1, "a")], [stage("train@1", 1, "a")]) is None


def test_processes_of_a_training_divide_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lone training divides them itself; on GPUs, as many trainings run as there are GPUs for."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    pair = [stage("train@1", 2), stage("train@2", 2)]
    assert threads(pair) == "3"
    assert threads(pair[:1]) is None
    assert threads(pair, gpus=(0, 1, 2), parallel=8) is None
    assert threads(pair, gpus=(0, 1, 2, 3), parallel=1) == "3"


def test_a_number_of_threads_set_by_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user knows what else the machine has to do."""
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads([stage("train@1", 1), stage("train@2", 1)]) == "5"
