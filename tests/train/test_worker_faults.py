"""One of two torchrun workers is killed, stopped or interrupted: the same again completes the training."""

import re
import signal
from pathlib import Path

import psutil
import pytest

from convs2s.train import run
from convs2s.train.launch import launch
from tests.train.test_run import in_process, prepare
from tests.train.tiny import tiny_params

pytestmark = pytest.mark.slow

# A worker that sends itself a signal after an update, once; others miss it after 5 s.
FAULTY = """
import datetime, os, pathlib
from convs2s.train import distributed, run
distributed.TIMEOUT = datetime.timedelta(seconds=5)
whole, rank = run.train, {rank}
def faulty(training):
    for report in whole(training):
        yield report
        now = training.state.updates == 23 and training.workers.rank == rank
        if now and not pathlib.Path("done").exists():
            pathlib.Path("done").touch()
            os.kill(os.getpid(), {number})
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
KILLED, SILENT = "worker {rank} failed with status -9.", "worker {other} failed with status 75."


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(("number", "message"), [(signal.SIGKILL, KILLED), (signal.SIGSTOP, SILENT)])
def test_the_training_ends_and_the_same_again_completes_it(
    rank: int,
    number: signal.Signals,
    message: str,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No worker is left, not even a stopped one, which torchrun waits 30 s for; outputs are the same."""
    (tmp_path / "faulty.py").write_text(FAULTY.format(rank=rank, number=int(number)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(run, "launch", lambda _, *rest: launch("faulty", *rest))
    folder = tmp_path / "a"
    params = prepare(folder, **PARAMS)
    with pytest.raises(ChildProcessError, match="The workers ended with status"):
        in_process(folder, params, monkeypatch)
    said = capfd.readouterr().err
    assert message.format(rank=rank, other=1 - rank) in said
    assert "is suspended or cannot be reached" in said
    assert "Traceback" not in said
    assert not [one for one in psutil.Process().children(recursive=True) if "faulty" in one.cmdline()]
    in_process(folder, tiny_params(folder, **PARAMS), monkeypatch)
    assert "checkpoint-20.safetensors: epoch 2, after 20 updates." in capfd.readouterr().err
    check_equal(folder, whole)


def check_equal(folder: Path, whole: Path) -> None:
    files = sorted(path.relative_to(whole) for path in (whole / "out").rglob("*") if path.is_file())
    assert len(files) == 2 + 1 + 4
    for name in files:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize(
    ("rank", "number", "to"),
    [
        (1, signal.SIGUSR1, "os.getpid()"),
        (0, signal.SIGTERM, "os.getppid()"),
        (0, signal.SIGUSR1, "os.getppid()"),
    ],
    ids=["one worker", "launcher", "launcher, from Slurm"],
)
def test_a_signal_to_end_saves_and_ends_all(
    rank: int,
    number: signal.Signals,
    to: str,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whichever process gets it, all end after the same update, which only a signal saves."""
    faulty = FAULTY.format(rank=rank, number=int(number)).replace("os.kill(os.getpid()", f"os.kill({to}")
    (tmp_path / "faulty.py").write_text(faulty)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(run, "launch", lambda _, *rest: launch("faulty", *rest))
    folder = tmp_path / "a"
    params = prepare(folder, **PARAMS, checkpoint_updates=1000)
    with pytest.raises(KeyboardInterrupt):
        in_process(folder, params, monkeypatch)
    assert f"{number.name}: finishing and saving this update." in capfd.readouterr().err
    in_process(folder, params, monkeypatch)
    found = re.search(r"epoch \d, after (\d+) updates", capfd.readouterr().err)
    assert found and int(found[1]) >= 24
    check_equal(folder, whole)
