"""The available GPUs (nvidia-smi is a fake script on PATH), and leases of them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.flows import machine
from pipelines.flows.dvc_stage import StageEnded, StageFailed
from pipelines.flows.resources import Leases, visible_gpus
from pipelines.shell import CommandFailed
from tests.flows import toy


def test_all_are_used_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user keeps GPUs for other work by naming the others in CUDA_VISIBLE_DEVICES."""
    monkeypatch.setenv("PATH", toy.with_gpus(tmp_path, 3))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == [0, 1, 2]
    assert machine.queues() == ["gpus-0", "gpus-1", "gpus-2", "gpus-3"]  # those of a remote worker
    for visible, gpus in {"1,2": [1, 2], "": [], "2,7": [2]}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert visible_gpus() == gpus


def test_a_failing_driver_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise all trainings would start at once on the CPU, or on GPUs that they have not leased."""
    monkeypatch.setenv("PATH", toy.with_gpus(tmp_path, 3))
    toy.write_program(tmp_path / "nvidia-smi", "echo mismatch of versions; exit 18")
    with pytest.raises(CommandFailed, match=r"nvidia-smi .* status 18: mismatch of versions"):
        visible_gpus()
    monkeypatch.setenv("PATH", "")
    assert visible_gpus() == []  # no driver


@pytest.mark.parametrize(
    ("gpus", "slots", "wanted", "most"),
    [
        ([4, 7], 1, [1, 1, 1, 1], 2),  # two trainings on one GPU would run out of memory
        ([0, 1, 2], 1, [2, 2], 1),
        ([], 2, [1, 1, 0], 2),  # without GPUs, trainings take slots, too
        ([3], 1, [0, 0, 1], 2),
    ],
)
def test_each_stage_has_gpus_or_a_slot_of_its_own(
    gpus: list[int], slots: int, wanted: list[int], most: int
) -> None:
    """Stages that need no GPU never lease one."""
    leases = Leases(gpus, slots)
    held = list[list[int]]()
    counts = list[int]()

    def hold(count: int) -> None:
        with leases.lease(count, threading.Event(), print) as leased:
            assert len(leased) == (count if gpus else 0)
            held.append(leased)
            counts.append(len(held))
            ids = [gpu for lease in held for gpu in lease]
            time.sleep(0.1)
            held.remove(leased)
            assert len(set(ids)) == len(ids), "a GPU was leased twice"

    with ThreadPoolExecutor() as pool:
        list(pool.map(hold, wanted))
    assert max(counts) == most


def test_no_stage_waits_in_vain() -> None:
    """A stage must not wait for more GPUs than there are, nor go on waiting once it is canceled."""
    too_many = pytest.raises(StageFailed, match=r"expected 2 GPUs, found 1: lower train\.workers")
    with too_many, Leases([0], 1).lease(2, threading.Event(), print):
        pytest.fail("it has been leased")
    leases = Leases([0], slots=1)
    stop = threading.Event()
    said = list[str]()
    with ThreadPoolExecutor() as pool, leases.lease(1, threading.Event(), print):
        waiting = pool.submit(leases.lease(1, stop, said.append).__enter__)
        stop.set()
        with pytest.raises(StageEnded):
            waiting.result(5)
    assert said == ["waits for 1 of 1 GPU(s)"]
