"""A training that shares its cores has as many threads as cores are free, where its results stay the same."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from convs2s.train.choose_layers import is_same_with
from convs2s.train.running import free_cores
from convs2s.train.running.free_cores import ThreadsByCores, count_free
from tests.train.tiny import ALONE, tiny_training, weights

BEFORE = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 100 0 50 1000 0 0 0 0 0 0\ncpu1 100 0 50 1000 0 0 0 0 7 7\nintr 1\n"
AFTER = {
    "idle": "cpu0 100 0 50 1025 0 0 0 0 0 0\ncpu1 100 0 50 1020 5 0 0 0 7 7\n",
    "one busy": "cpu0 125 0 50 1000 0 0 0 0 0 0\ncpu1 100 0 50 1025 0 0 0 0 7 7\n",
    "both busy": "cpu0 125 0 50 1000 0 0 0 0 0 0\ncpu1 125 0 50 1000 0 0 0 0 7 7\n",
    "stolen": "cpu0 100 0 50 1000 0 0 0 25 0 0\ncpu1 120 0 55 1000 0 0 0 0 27 7\n",
}


class Machine:
    """Two cores, and a training that has used some of their time."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stat, self.own, self.now = folder / "stat", 0.0, 0.0
        self.stat.write_text(BEFORE)
        monkeypatch.setattr(free_cores, "STAT", self.stat)
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr("time.process_time", lambda: self.own)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def pass_seconds(self, threads: ThreadsByCores, state: str, own: float) -> str | None:
        """Let ten seconds pass in which the training uses so many cores; return what it says."""
        threads.look()
        self.stat.write_text(AFTER[state])
        self.own += 10.0 * own
        self.now += 10.0
        said = threads.follow()
        self.stat.write_text(BEFORE)
        return said


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine on which this process has two threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield Machine(tmp_path, monkeypatch)
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("state", "free"), [("idle", 2.0), ("one busy", 1.0), ("both busy", 0.0), ("stolen", 0.0)]
)
def test_idle_cores_are_counted(state: str, free: float, machine: Machine) -> None:
    """Waiting for a disk leaves a core free; what another machine on the same processor takes does not."""
    assert count_free(BEFORE, AFTER[state]) == free


@pytest.mark.usefixtures("machine")
def test_threads_follow_the_free_cores(tmp_path: Path, machine: Machine) -> None:
    """What the training itself uses is free for it. Only the first change is said."""
    steps = [
        ("both busy", 2.0, 2), ("both busy", 1.6, 2), ("both busy", 1.2, 1), ("both busy", 0.2, 1),
        ("one busy", 1.0, 2), ("idle", 0.0, 2), ("stolen", 1.0, 1),
    ]  # fmt: skip
    said = []
    with ThreadsByCores(tiny_training(tmp_path)) as threads:
        for state, own, expected in steps:
            said += [threads.follow() or machine.pass_seconds(threads, state, own)]
            assert torch.get_num_threads() == expected, (state, own)
    assert torch.get_num_threads() == 2
    assert [text for text in said if text] == [
        "Other processes use 0.8 of 2 cores: training goes on with 1 thread, and has more again "
        "when cores are free, with the same results."
    ]


@pytest.mark.parametrize("reason", ["fixed", "workers", "results"])
def test_other_threads_that_may_not_be_had_are_a_warning(
    reason: str, tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is the user's, or each of several processes has its own, or results would differ; once."""
    training = tiny_training(tmp_path)
    if reason == "fixed":
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
    elif reason == "workers":
        training.workers = dataclasses.replace(ALONE, count=2)
    else:
        monkeypatch.setattr(free_cores, "is_same_with", lambda *_: False)
    threads = ThreadsByCores(training)
    said = machine.pass_seconds(threads, "both busy", 1.0)
    assert said == (
        "warning: other processes use 1.0 of 2 cores, and training has 2 threads, so it is slower than "
        "alone. A thread that waits for a core holds up the others: two can be half as fast as one. With "
        "fewer, which may round differently: OMP_NUM_THREADS=1"
    )
    assert torch.get_num_threads() == 2
    assert machine.pass_seconds(threads, "both busy", 1.0) is None


def test_a_system_without_these_counts_says_nothing(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are Linux's."""
    monkeypatch.setattr(free_cores, "STAT", tmp_path / "none")
    threads = ThreadsByCores(tiny_training(tmp_path))
    machine.now += 1000.0
    assert threads.follow() is None


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("changes", [True, False])
def test_results_that_threads_change_are_noticed(tmp_path: Path, precision: str, changes: bool) -> None:
    """By another rounding, here of the encoder; the number of threads and the weights stay as they are."""
    training = tiny_training(tmp_path, precision=precision)
    before = weights(training)

    def round_by_threads(module: nn.Module, inputs: object, output: Tensor) -> Tensor:
        return output * (1.0 + 2.0**-6 * (torch.get_num_threads() - 1)) if changes else output

    training.model.encoder.blocks[0].register_forward_hook(round_by_threads)
    threads = torch.get_num_threads()
    assert is_same_with(training, threads + 1) is not changes
    assert torch.get_num_threads() == threads
    assert torch.equal(weights(training), before)
    assert all(parameter.grad is None for parameter in training.model.parameters())
