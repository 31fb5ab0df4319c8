"""Which GPUs there are: nvidia-smi is played by a script on PATH."""

import os
from pathlib import Path

import pytest

from pipelines.flows.resources import choose_gpus, visible_gpus


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
    assert choose_gpus(None) == [0, 1, 2]
    assert choose_gpus([]) == [0, 1, 2]
    assert choose_gpus([2, 0]) == [2, 0]
    with pytest.raises(ValueError, match=r"gpus: found \[1, 1\], wanted each id once"):
        choose_gpus([1, 1])


@pytest.mark.usefixtures("three_gpus")
def test_cuda_visible_devices_narrows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may be given a part of a machine."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    assert visible_gpus() == [1, 2]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1f2e")
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES: found GPU-1f2e, wanted numbers"):
        visible_gpus()


def test_a_driver_that_fails_is_no_machine_without_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All trainings would start at once on the CPU, or on the GPUs without a lease."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho mismatch of versions; exit 18\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ValueError, match="nvidia-smi fails, so GPUs cannot be leased: mismatch of versions"):
        visible_gpus()


@pytest.mark.usefixtures("three_gpus")
def test_a_missing_gpu_is_named() -> None:
    """The stage would fail hours later."""
    with pytest.raises(
        ValueError, match=r"gpus: found \[0, 5\], but this machine shows \[0, 1, 2\] \(CUDA_VIS"
    ):
        choose_gpus([0, 5])


def test_without_a_driver_there_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The pipeline runs on the CPU then."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus() == []
    with pytest.raises(ValueError, match="this machine shows none"):
        choose_gpus([0])
