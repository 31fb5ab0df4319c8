"""The available GPUs (nvidia-smi is a fake script on PATH), and leases of them."""

import os
import threading
from pathlib import Path

import pytest

from pipelines.flows.dvc_stage import StageNotStarted
from pipelines.flows.resources import Leases, choose_gpus, visible_gpus


@pytest.fixture
def three_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\n[ "$*" = "--query-gpu=index --format=csv,noheader" ] && printf "0\\n1\\n2\\n"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("three_gpus")
def test_all_are_used_unless_named() -> None:
    """An empty field of the form means all."""
    assert choose_gpus([]) == [0, 1, 2]
    assert choose_gpus([2, 0]) == [2, 0]
    with pytest.raises(ValueError, match=r"gpus: found \[1, 1\]; .* each once"):
        choose_gpus([1, 1])


@pytest.mark.usefixtures("three_gpus")
def test_cuda_visible_devices_restricts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may own only some of a machine's GPUs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    assert visible_gpus() == [1, 2]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1f2e")
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES: found GPU-1f2e, wanted GPU numbers"):
        visible_gpus()


def test_a_failing_driver_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise all trainings would start at once on the CPU, or on GPUs that they have not leased."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho mismatch of versions; exit 18\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(
        ValueError, match=r"GPUs cannot be leased: nvidia-smi .* status 18: mismatch of versions"
    ):
        visible_gpus()


@pytest.mark.usefixtures("three_gpus")
def test_a_missing_gpu_is_reported() -> None:
    """Otherwise the stage would fail hours later."""
    with pytest.raises(ValueError, match=r"gpus: found \[0, 5\]; this machine shows \[0, 1, 2\] \(CUDA_VIS"):
        choose_gpus([0, 5])


def test_without_a_driver_there_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The pipeline then runs on the CPU."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus() == []
    with pytest.raises(ValueError, match="this machine shows none"):
        choose_gpus([0])


def most_at_once(leases: Leases, wanted: list[int]) -> int:
    """Take out these leases at once, each in a thread; return the largest number held at the same time."""
    lock, held, most = threading.Lock(), list[list[int]](), 0
    full = threading.Event()

    def hold(count: int) -> None:
        nonlocal most
        with leases.lease(count, threading.Event()) as gpus:
            with lock:
                assert not {gpu for others in held for gpu in others} & {*gpus}, "a GPU was leased twice"
                held.append(gpus)
                most = max(most, len(held))
            full.wait(0.1)
            with lock:
                held.remove(gpus)

    threads = [threading.Thread(target=hold, args=(count,)) for count in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most


def test_each_stage_has_gpus_of_its_own() -> None:
    """Two trainings on one GPU would run out of memory."""
    assert most_at_once(Leases([4, 7], slots=1), [1, 1, 1, 1]) == 2
    assert most_at_once(Leases([4], slots=9), [1, 1]) == 1
    assert most_at_once(Leases([0, 1, 2], slots=1), [2, 2]) == 1
    assert most_at_once(Leases([0, 1, 2], slots=1), [2, 1]) == 2


def test_slots_limit_the_stages_on_the_cpu() -> None:
    """Without GPUs, trainings take slots, too; stages that need no GPU never lease one."""
    assert most_at_once(Leases([], slots=2), [1, 1, 0]) == 2
    assert most_at_once(Leases([3], slots=1), [0, 0, 0]) == 1
    assert most_at_once(Leases([3], slots=1), [0, 1]) == 2
    with Leases([3], slots=1).lease(0, threading.Event()) as none:
        assert none == []


def test_a_stage_that_waits_for_a_gpu_ends_when_the_run_does() -> None:
    """After a cancellation it must not start when other stages release their GPUs."""
    leases, stop, ended = Leases([0], slots=1), threading.Event(), list[str]()

    def wait() -> None:
        with pytest.raises(StageNotStarted), leases.lease(1, stop):
            ended.append("started")
        ended.append("over")

    with leases.lease(1, threading.Event()):
        thread = threading.Thread(target=wait)
        thread.start()
        stop.set()
    thread.join(5)
    assert ended == ["over"]
