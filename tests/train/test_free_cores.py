"""A training that shares its cores has as many threads as cores are free, where its results stay the same."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from convs2s.ids.encoded import EncodedSentences
from convs2s.ids.vocabulary import EOS
from convs2s.train.choose_layers import choose_alike, is_same_with
from convs2s.train.loop import train
from convs2s.train.running import free_cores
from convs2s.train.running.free_cores import ThreadsByCores, count_free
from convs2s.train.setup import build_training
from convs2s.train.training import Training
from tests.train.tiny import ALONE, tiny_params, tiny_training, weights, write_tiny

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
        self.stat = folder / "stat"
        self.own = self.now = 0.0
        self.busy = [0, 0]  # hundredths of a second of each core
        self.cores = {0, 1}
        self.tried: list[int] = []
        self.write()
        monkeypatch.setattr(free_cores, "STAT", self.stat)
        monkeypatch.setattr("os.sched_getaffinity", lambda _: self.cores)
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr("time.process_time", lambda: self.own)
        monkeypatch.setattr(free_cores, "is_same_with", self.is_same_with)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def is_same_with(self, training: Training, threads: int) -> bool:
        """Note the number; results are the same with one thread."""
        self.tried.append(threads)
        return threads == 1

    def write(self) -> None:
        """Write how busy the cores have been."""
        lines = (f"cpu{i} {busy} 0 0 {100 * self.now - busy:.0f} 0 0 0 0" for i, busy in enumerate(self.busy))
        self.stat.write_text("\n".join(lines))

    def pass_seconds(self, threads: ThreadsByCores, busy: Sequence[float], own: float) -> str | None:
        """Let ten seconds pass in which cores are busy, also with the training; return what it says."""
        self.busy = [sum_ + round(1000 * share) for sum_, share in zip(self.busy, busy, strict=True)]
        self.own += 10.0 * own
        self.now += 10.0
        self.write()
        return threads.follow()


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
    assert machine.cores == {0, 1}
    assert count_free(BEFORE, AFTER[state]) == free


def test_threads_follow_the_free_cores(tmp_path: Path, machine: Machine) -> None:
    """What the training itself uses is free for it. Only the first change is said."""
    steps = [
        ((1, 1), 2.0, 2), ((1, 1), 2.1, 2), ((1, 1), 1.6, 2), ((1, 1), 1.2, 1), ((1, 1), 0.2, 1),
        ((1, 0), 1.0, 2), ((0, 0), 0.0, 2), ((1, 1), 1.0, 1),
    ]  # fmt: skip
    said = []
    with ThreadsByCores(tiny_training(tmp_path)) as threads:
        for busy, own, expected in steps:
            said += [threads.follow() or machine.pass_seconds(threads, busy, own)]
            assert torch.get_num_threads() == expected, (busy, own)
    assert torch.get_num_threads() == 2
    assert machine.tried == [1]
    assert [text for text in said if text] == [
        "Other processes use 0.8 of 2 cores: training goes on with 1 thread, which gives the same results, "
        "and has more when cores are free."
    ]


def test_it_looks_often_at_first(tmp_path: Path, machine: Machine) -> None:
    """After half a second, then in intervals that grow to ten seconds."""
    threads = ThreadsByCores(tiny_training(tmp_path))
    looks = []
    for tenth in range(1, 400):
        machine.now = tenth / 10
        machine.write()
        before = threads.since
        assert threads.follow() is None
        if threads.since > before:
            looks.append(machine.now)
    assert looks == [0.5, 1.5, 3.5, 7.5, 15.5, 25.5, 35.5]


@pytest.mark.parametrize("reason", ["fixed", "workers", "compiled", "selection", "results"])
def test_other_threads_that_may_not_be_had_are_a_warning(
    reason: str, tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is the user's, or each of several processes has its own, or results may differ; once."""
    selection = {"common": 2, "candidates": 3} if reason == "selection" else None
    training = tiny_training(tmp_path, compile=reason == "compiled", selection=selection)
    if reason == "fixed":
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
    elif reason == "workers":
        training.workers = dataclasses.replace(ALONE, count=2)
    elif reason == "results":
        monkeypatch.setattr(free_cores, "is_same_with", lambda *_: False)
    threads = ThreadsByCores(training)
    assert machine.pass_seconds(threads, (1, 1), 2.0) is None
    said = machine.pass_seconds(threads, (1, 1), 1.0)
    assert said == (
        "warning: other processes use 1.0 of 2 cores, and training has 2 threads, so it is slower than "
        "alone. A thread that waits for a core holds up the others: two can be half as fast as one. With "
        "fewer, which may round differently: OMP_NUM_THREADS=1"
    )
    assert torch.get_num_threads() == 2
    assert machine.pass_seconds(threads, (1, 1), 1.0) is None


def test_one_thread_without_a_core_is_a_warning(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else says why it is slow; with fewer threads it would not be faster."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    threads = ThreadsByCores(tiny_training(tmp_path))
    assert machine.pass_seconds(threads, (1, 1), 1.0) is None
    said = machine.pass_seconds(threads, (1, 1), 0.4)
    assert said == (
        "warning: other processes use 1.6 of 2 cores, and training has 1 thread, so it is slower than alone."
    )


def test_threads_that_give_other_results_are_not_kept(tmp_path: Path, machine: Machine) -> None:
    """With two threads of three, results are others here: it goes back to the three that it began with."""
    torch.set_num_threads(3)
    machine.cores = {0, 1, 2}
    machine.busy = [0, 0, 0]
    machine.write()
    threads = ThreadsByCores(tiny_training(tmp_path))
    for busy, expected in (((1, 1, 1), 1), ((1, 1, 0), 3)):
        said = machine.pass_seconds(threads, busy, 1.0)
        assert torch.get_num_threads() == expected
    assert machine.tried == [1, 2]
    assert said is not None
    assert said.startswith("warning: other processes use 1.0 of 3 cores, and training has 3 threads")


@pytest.mark.parametrize("cores", [set(), {2, 3}])
def test_a_system_that_counts_other_cores_or_none_says_nothing(
    cores: set[int], tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts are Linux's; a container may show cores by other numbers than those that it has."""
    if cores:
        machine.cores = cores
    else:
        monkeypatch.setattr(free_cores, "STAT", tmp_path / "none")
    threads = ThreadsByCores(tiny_training(tmp_path))
    assert machine.pass_seconds(threads, (1, 1), 0.0) is None
    assert torch.get_num_threads() == 2


def test_only_cores_that_the_process_may_use_count(tmp_path: Path, machine: Machine) -> None:
    """Also if taskset changes them during the training."""
    threads = ThreadsByCores(tiny_training(tmp_path))
    machine.cores = {0}
    assert machine.pass_seconds(threads, (1, 0), 1.0) is not None
    assert torch.get_num_threads() == 1
    machine.cores = {0, 1}
    machine.pass_seconds(threads, (1, 0), 1.0)
    assert torch.get_num_threads() == 2


def test_a_batch_that_is_compared_is_no_larger_than_an_update() -> None:
    """Its pairs are padded to the longest; a pair that is longer than all updates is compared alone."""
    lengths = np.array([3] * 600 + [997] * 60)
    assert len(choose_alike(lengths, 4000)) == 105  # the others would be padded to 997
    assert len(choose_alike(lengths[:600], 4000)) == 150
    assert list(choose_alike(np.array([5]), 4)) == [0]
    assert list(choose_alike(np.arange(1, 1001), 4000)) == [750, 751, 752, 753, 754]


def test_results_that_cannot_be_computed_are_not_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training goes on with the threads that it has."""
    training = tiny_training(tmp_path)
    monkeypatch.setattr(training.model.encoder.blocks[0], "forward", lambda *_: 1 / 0)
    threads = torch.get_num_threads()
    assert not is_same_with(training, threads + 1)
    assert torch.get_num_threads() == threads


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


ENTRIES = 100
WIDE = {
    "embedding_size": 128,
    "output_embedding_size": 128,
    "encoder_widths": [128, 128],
    "decoder_widths": [128, 128],
}
"""With some hundred tokens an update, PyTorch's threads share the work."""


def long_sentences(count: int, start: int) -> EncodedSentences:
    """Return sentences of 11 to 26 tokens; the attention of shorter ones would be the work of one thread."""
    lengths = np.array([10 + 5 * ((i + start) % 4) for i in range(count)])
    rows = [
        [*(3 + (7 * (i + start) + 3 * np.arange(length) ** 2) % (ENTRIES - 3)), EOS]
        for i, length in enumerate(lengths)
    ]
    return EncodedSentences(np.concatenate(rows), lengths + 1)


@pytest.mark.parametrize(
    ("precision", "optimizer", "learning_rate"), [("float32", "nesterov", 0.25), ("bfloat16", "adam", 0.001)]
)
def test_weights_do_not_depend_on_the_number_of_threads(
    tmp_path: Path, precision: str, optimizer: str, learning_rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training may have another number at any update, so each update gives the same to the last bit."""
    monkeypatch.setattr("convs2s.engine.loops.WORTH_A_THREAD", 1 << 11)  # so that all loops are shared
    monkeypatch.setattr("tests.train.tiny.VOCABULARY", ENTRIES)
    monkeypatch.setattr("tests.train.tiny.sentences", long_sentences)
    write_tiny(tmp_path, 300)
    params = tiny_params(
        tmp_path, precision=precision, optimizer=optimizer, learning_rate=learning_rate, batch_sentences=32,
        max_tokens=600,
    )  # fmt: skip
    model = params.model.model_copy(update=WIDE)
    paths = tmp_path / "encoded", tmp_path / "vocabulary", tmp_path / "candidates" / "candidates.npz"
    trained = list[Tensor]()
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            training = build_training(model, params.train, 1, *paths, ALONE)
            for _ in itertools.islice(train(training), 10):
                pass
            assert training.state.updates == 10
            trained.append(weights(training))
    finally:
        torch.set_num_threads(before)
    for other in trained[1:]:
        assert torch.equal(other, trained[0])
