"""One of two torchrun workers is killed, stopped or interrupted: the same again completes the training."""

import re
import signal
from pathlib import Path

import psutil
import pytest

from convs2s.train.running import run
from convs2s.train.running.launch import launch
from tests.train.test_run import in_process, prepare

pytestmark = pytest.mark.slow

# A worker that sends itself a signal after an update, once; others miss it after 5 s.
FAULTY = """
import datetime, os, pathlib
from convs2s.train import distributed
from convs2s.train.running import run
distributed.TIMEOUT = datetime.timedelta(seconds=5)
whole, rank = run.train, {rank}
def faulty(training):
    for report in whole(training):
        yield report
        now = training.state.updates == 23 and training.workers.rank == rank
        if now and not pathlib.Path("done").exists():
            pathlib.Path("done").touch()
            os.kill({process}, {number})
run.train = faulty
run.main()
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed training with two workers."""
    folder = tmp_path_factory.mktemp("whole") / "a"
    with pytest.MonkeyPatch.context() as patch:
        in_process(folder, prepare(folder, **PARAMS), patch)
    return folder


PARAMS = {"workers": 2, "batch_sentences": 4, "max_epochs": 3}
KILLED, SILENT = "worker {rank} failed with status -9.", "worker {other} failed with status 2."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a training whose workers run tmp_path/faulty.py."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(run, "launch", lambda _, *rest: launch("faulty", *rest))
    return tmp_path / "a"


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(("number", "message"), [(signal.SIGKILL, KILLED), (signal.SIGSTOP, SILENT)])
def test_the_training_ends_and_the_same_again_completes_it(
    rank: int,
    number: signal.Signals,
    message: str,
    whole: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No worker is left, not even a stopped one, which torchrun waits 30 s for; outputs are the same."""
    fault = FAULTY.format(rank=rank, number=int(number), process="os.getpid()")
    folder.with_name("faulty.py").write_text(fault)
    params = prepare(folder, **PARAMS)
    with pytest.raises(ChildProcessError, match="The workers ended with status"):
        in_process(folder, params, monkeypatch)
    said = capfd.readouterr().err
    assert message.format(rank=rank, other=1 - rank) in said
    assert "is suspended or cannot be reached" in said
    assert "Traceback" not in said
    assert not [one for one in psutil.Process().children(recursive=True) if "faulty" in one.cmdline()]
    in_process(folder, params, monkeypatch)
    assert "checkpoint-20.safetensors: epoch 2, after 20 updates." in capfd.readouterr().err
    check_equal(folder, whole)


def check_equal(folder: Path, whole: Path) -> None:
    files = sorted(path.relative_to(whole) for path in (whole / "out").rglob("*") if path.is_file())
    assert len(files) == 2 + 1 + 4
    for name in files:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize(
    ("rank", "process"), [(1, "os.getpid()"), (0, "os.getppid()")], ids=["one worker", "launcher"]
)
def test_a_signal_to_end_saves_and_ends_all(
    rank: int,
    process: str,
    whole: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whichever process gets Slurm's, all end after the same update, which only a signal saves."""
    fault = FAULTY.format(rank=rank, number=int(signal.SIGUSR1), process=process)
    folder.with_name("faulty.py").write_text(fault)
    params = prepare(folder, **PARAMS, checkpoint_updates=1000)
    with pytest.raises(KeyboardInterrupt):
        in_process(folder, params, monkeypatch)
    assert "SIGUSR1: finishing and saving this update." in capfd.readouterr().err
    in_process(folder, params, monkeypatch)
    found = re.search(r"epoch \d, after (\d+) updates", capfd.readouterr().err)
    assert found and int(found[1]) >= 24
    check_equal(folder, whole)
