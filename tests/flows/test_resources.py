"""The available GPUs (nvidia-smi is a fake script on PATH), and leases of them."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.flows.dvc_stage import StageEnded
from pipelines.flows.resources import Leases, choose_gpus, queues, visible_gpus
from pipelines.shell import CommandFailed
from tests.flows import toy


def test_all_are_used_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty field of the form means all; CUDA_VISIBLE_DEVICES restricts them."""
    monkeypatch.setenv("PATH", toy.with_gpus(tmp_path, 3))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert choose_gpus([]) == [0, 1, 2]
    assert choose_gpus([2, 0]) == [2, 0]
    for asked in ([1, 1], [0, 5]):
        message = f"gpus: expected some of [0, 1, 2], each once, found {asked}"
        with pytest.raises(ValueError, match=re.escape(message)):
            choose_gpus(asked)
    assert queues() == ["cpu", "gpus-1", "gpus-2", "gpus-3"]  # those of a remote worker
    for visible, found in {"1,2": [1, 2], "": [], "2,7": [2]}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert visible_gpus() == found


def test_a_failing_driver_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise all trainings would start at once on the CPU, or on GPUs that they have not leased."""
    monkeypatch.setenv("PATH", toy.with_gpus(tmp_path, 3))
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho mismatch of versions; exit 18\n")
    with pytest.raises(CommandFailed, match=r"nvidia-smi .* status 18: mismatch of versions"):
        visible_gpus()
    monkeypatch.setenv("PATH", "")
    assert visible_gpus() == []  # no driver


def most_at_once(leases: Leases, wanted: list[int]) -> int:
    """Take out these leases at once, each in a thread; return the largest number held at the same time."""
    held, counts = list[list[int]](), list[int]()

    def hold(count: int) -> None:
        with leases.lease(count, threading.Event()) as gpus:
            held.append(gpus)
            counts.append(len(held))
            taken = [gpu for others in held for gpu in others]
            time.sleep(0.1)
            held.remove(gpus)
            assert len(set(taken)) == len(taken), "a GPU was leased twice"

    with ThreadPoolExecutor() as pool:
        list(pool.map(hold, wanted))
    return max(counts)


@pytest.mark.parametrize(
    ("gpus", "slots", "wanted", "most"),
    [
        ([4, 7], 1, [1, 1, 1, 1], 2),  # two trainings on one GPU would run out of memory
        ([0, 1, 2], 1, [2, 2], 1),
        ([0, 1, 2], 1, [2, 1], 2),
        ([], 2, [1, 1, 0], 2),  # without GPUs, trainings take slots, too
        ([3], 1, [0, 0, 0], 1),
        ([3], 1, [0, 1], 2),
    ],
)
def test_each_stage_has_gpus_or_a_slot_of_its_own(
    gpus: list[int], slots: int, wanted: list[int], most: int
) -> None:
    """Stages that need no GPU never lease one."""
    assert most_at_once(Leases(gpus, slots), wanted) == most
    with Leases(gpus, slots).lease(0, threading.Event()) as none:
        assert none == []


def test_a_stage_that_waits_for_a_gpu_ends_when_the_run_does() -> None:
    """After a cancellation it must not start when other stages release their GPUs."""
    leases, stop = Leases([0], slots=1), threading.Event()
    with ThreadPoolExecutor() as pool, leases.lease(1, threading.Event()):
        waiting = pool.submit(leases.lease(1, stop).__enter__)
        stop.set()
        with pytest.raises(StageEnded):
            waiting.result(5)
