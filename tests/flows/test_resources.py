"""The available GPUs (nvidia-smi is a fake script on PATH), and leases of them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.flows import machine, resources
from pipelines.flows.dvc_stage import StageEnded, StageFailed
from pipelines.flows.resources import Leases, visible_gpus
from tests.flows import toy

MIG = ["MIG-3eb87630", "MIG-3ff00000"]  # of drivers from R470 on
LEGACY = "MIG-GPU-0f6c0a11-0000/1/0"  # of older ones; newer ones take it, too


@pytest.fixture
def three_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with three GPUs, the first with two MIG devices."""
    monkeypatch.setenv("PATH", toy.with_gpus(tmp_path, 3, MIG))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("three_gpus")
def test_all_are_used_unless_named() -> None:
    """A user keeps GPUs for other work by naming the others in CUDA_VISIBLE_DEVICES."""
    assert visible_gpus() == ["0", "1", "2"]
    assert machine.queues() == ["gpus-0", "gpus-1", "gpus-2", "gpus-3"]  # those of a remote worker


@pytest.mark.usefixtures("three_gpus")
@pytest.mark.parametrize(
    ("visible", "gpus", "fault"),
    [
        ("1,2", ["1", "2"], None),
        (" 2, 0 ", ["2", "0"], None),
        ("", [], None),
        ("2,-1,0", ["2"], None),  # as a program's own list ends
        ("GPU-2f6c0a11-0000", ["GPU-2f6c0a11-0000"], None),
        ("GPU-1f6c, GPU-0", ["GPU-1f6c", "GPU-0"], None),  # as many digits as tell it from the others
        ("GPU-,2", [], "GPU-"),
        (",".join(MIG), MIG, None),
        ("MIG-3eb,0", ["MIG-3eb", "0"], None),
        (LEGACY, [LEGACY], None),
        ("MIG-GPU-77/1/0", [], "MIG-GPU-77/1/0"),
        ("MIG-5", [], "MIG-5"),
        ("2,7,1", ["2"], "7"),
        ("GPU-1,GPU-9", ["GPU-1"], "GPU-9"),
        ("NoDevFiles", [], "NoDevFiles"),  # of Slurm, for a job without GPUs
        ("0,1,0", [], "0"),
        ("0,GPU-0f6c", [], "GPU-0f6c"),
        ("MIG-3eb87630,MIG-3eb", [], "MIG-3eb"),
    ],
)
def test_gpus_are_named_as_cuda_reads_names(
    visible: str,
    gpus: list[str],
    fault: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is visible, but not leased, trainings share until its memory is full; a typo must be said."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert visible_gpus() == gpus
    assert bool(caplog.records) == bool(fault)
    if fault:
        assert f"CUDA_VISIBLE_DEVICES={visible}: expected " in caplog.text
        assert f"found {fault!r}" in caplog.text


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("echo No devices were found; exit 6", "has failed with status 6: No devices were found"),
        ("echo no driver; exit 9", "has failed with status 9: no driver"),
        ("echo mismatch >&2; exit 18", "has failed with status 18: mismatch"),
        ("exec sleep 60", "has not answered for 0.2 s"),
        ("echo No devices were found", None),
    ],
)
def test_a_driver_without_gpus_is_none(
    answer: str,
    message: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An image for GPUs works on a machine without one; and where a GPU hangs, so would what asks for it."""
    monkeypatch.setattr(resources, "SECONDS", 0.2)
    monkeypatch.setenv("PATH", toy.with_gpus(tmp_path, 1))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    toy.write_program(tmp_path / "nvidia-smi", answer)
    assert visible_gpus() == []
    assert machine.queues() == ["gpus-0"]
    said = caplog.messages
    expected = [f"nvidia-smi {message}. No GPU is used. If there is one, see to its driver."] * 2
    assert said == (expected if message else [])


def test_without_nvidia_smi_there_are_no_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no NVIDIA GPU, or nobody who could say which."""
    monkeypatch.setenv("PATH", "")
    assert visible_gpus() == []


@pytest.mark.parametrize(
    ("gpus", "slots", "wanted", "most"),
    [
        (["4", "MIG-7"], 1, [1, 1, 1, 1], 2),  # two trainings on one GPU would run out of memory
        (["0", "1", "2"], 1, [2, 2], 1),
        ([], 2, [1, 1, 0], 2),  # without GPUs, trainings take slots, too
        (["3"], 1, [0, 0, 1], 2),
    ],
)
def test_each_stage_has_gpus_or_a_slot_of_its_own(
    gpus: list[str], slots: int, wanted: list[int], most: int
) -> None:
    """Stages that need no GPU never lease one."""
    leases = Leases(gpus, slots)
    held = list[list[str]]()
    counts = list[int]()
    stop = threading.Event()

    def hold(count: int) -> None:
        with leases.lease(count, stop, print) as leased:
            assert len(leased) == (count if gpus else 0)
            held.append(leased)
            counts.append(len(held))
            ids = [gpu for lease in held for gpu in lease]
            time.sleep(0.1)
            held.remove(leased)
            assert len(set(ids)) == len(ids), "a GPU was leased twice"

    with ThreadPoolExecutor() as pool:
        try:
            list(pool.map(hold, wanted, timeout=20))
        finally:
            stop.set()  # or the pool would wait for a lease that is never given back
    assert max(counts) == most


def test_no_stage_waits_in_vain() -> None:
    """A stage must not wait for more GPUs than there are, nor go on waiting once it is canceled."""
    too_many = pytest.raises(
        StageFailed, match=r"expected 2 GPUs, found 1: set run\.processes in params\.yaml to 1"
    )
    with too_many, Leases(["0"], 1).lease(2, threading.Event(), print):
        pytest.fail("it has been leased")
    leases = Leases(["0"], slots=1)
    stop = threading.Event()
    said = list[str]()
    with ThreadPoolExecutor() as pool, leases.lease(1, threading.Event(), print):
        waiting = pool.submit(leases.lease(1, stop, said.append).__enter__)
        stop.set()
        with pytest.raises(StageEnded):
            waiting.result(5)
    assert said == ["waits for 1 of 1 GPU(s)"]
