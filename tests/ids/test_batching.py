import numpy as np
import pytest

from convs2s.ids.batching import Batch, Batching, pad

SOURCE = [3, 9, 4, 4, 7, 2, 8, 5, 5, 6, 3]
TARGET = [4, 8, 4, 3, 9, 2, 7, 5, 6, 6, 3]


def batches(batching: Batching, rank: int = 0, seed: int = 1, epoch: int = 0) -> list[Batch]:
    return list(batching.share(batching.order(SOURCE, TARGET, seed, epoch), rank))


def sentences(batching: Batching, rank: int = 0, seed: int = 1, epoch: int = 0) -> list[list[int]]:
    own = batches(batching, rank, seed, epoch)
    return [sorted(int(i) for part in batch.parts for i in part if batch.counted) for batch in own]


def test_an_update_over_n_sentences_is_split_at_the_token_limit() -> None:
    """The paper's rule (T14): the batch stays whole, its parts fit; token counts are of the whole batch."""
    for batch in batches(Batching(True, 5, 12)):
        members = np.concatenate(batch.parts)
        assert sorted(batch.whole) == sorted(members)
        assert batch.target_tokens == sum(TARGET[i] for i in members)
        for part in batch.parts:
            widest = max(max(SOURCE[i], TARGET[i]) for i in part)
            assert widest * len(part) <= 12 or len(part) == 1
    assert max(len(b.parts) for b in batches(Batching(True, 5, 12))) > 1


def test_order_depends_on_seed_and_epoch_only() -> None:
    """The order is deterministic, but differs between epochs and between seeds."""
    batching = Batching(True, 2, 1000)
    assert sentences(batching) == sentences(batching)
    assert sentences(batching) != sentences(batching, epoch=1)
    assert sentences(batching) != sentences(batching, seed=2)


@pytest.mark.parametrize("by_sentences", [True, False])
@pytest.mark.parametrize("longest", [40, 70_000])
def test_the_order_follows_the_definition(by_sentences: bool, longest: int) -> None:
    """Checkpoints rest on it: sorted by both lengths, then random numbers, cut, and shuffled."""
    source, target = np.random.default_rng(2).integers(1, [[40], [longest]], (2, 3000))
    random = np.random.default_rng([1, 7])
    numbers = random.random(3000)
    wanted: list[list[int]] = [[]]
    for i in sorted(range(3000), key=lambda i: (source[i], target[i], numbers[i])):
        widest = max(max(source[j], target[j]) for j in [*wanted[-1], i])
        fits = by_sentences or widest * (len(wanted[-1]) + 1) <= 900
        if wanted[-1] and (len(wanted[-1]) == 50 or not fits):
            wanted.append([])
        wanted[-1].append(i)
    batching = Batching(by_sentences, 50, 900)
    found = batching.share(batching.order(source, target, seed=1, epoch=7), 0)
    assert [b.whole.tolist() for b in found] == [wanted[i] for i in random.permutation(len(wanted))]


def test_a_worker_can_begin_at_any_batch() -> None:
    """A training that resumes in the middle of a pass goes on with the batches that it has not seen."""
    batching = Batching(True, 1, 12, workers=2)
    order = batching.order(SOURCE, TARGET, 1, 0)
    for rank in (0, 1):
        whole, rest = list(batching.share(order, rank)), list(batching.share(order, rank, 2))
        assert [str(batch) for batch in whole[2:]] == [str(batch) for batch in rest]


@pytest.mark.parametrize("by_sentences", [True, False])
def test_two_workers_of_half_the_batch_share_the_batches_of_one(by_sentences: bool) -> None:
    """T13's test needs this: the workers' shares together are the single worker's batches, in order."""
    alone, shared = Batching(by_sentences, 4, 24), Batching(by_sentences, 2, 12, workers=2)
    shares = [sentences(shared, rank) for rank in (0, 1)]
    assert [sorted(a + b) for a, b in zip(*shares, strict=True)] == sentences(alone)
    wholes = [str([batch.whole for batch in batches(one)]) for one in (alone, shared)]
    assert wholes[0] == wholes[1]  # vocabulary selection is over these


def test_a_worker_without_sentences_stays_in_step_uncounted() -> None:
    """Two workers share a last batch of one sentence: the second processes it without counting it."""
    ranks = [batches(Batching(True, 1, 100, workers=2), rank) for rank in (0, 1)]
    counted = [[batch.counted for batch in worker] for worker in ranks]
    assert sorted(map(tuple, zip(*counted, strict=True))) == [(True, False), *[(True, True)] * 5]
    assert all(batch.parts and len(batch.parts[0]) for worker in ranks for batch in worker)


@pytest.mark.parametrize("by_sentences", [True, False])
def test_fewer_processes_take_the_shares_in_turn(by_sentences: bool) -> None:
    """Each share is cut into parts of its own, as by a process of its own, and left out if it is empty."""
    batching = Batching(by_sentences, 1, 12, workers=4)
    order = batching.order(SOURCE, TARGET, 1, 0)
    shares = [list(batching.share(order, share)) for share in range(4)]
    for rank in range(3):
        for i, batch in enumerate(batching.share(order, rank, processes=3)):
            own = [shares[share][i] for share in range(rank, 4, 3)]
            own = [share for share in own if share.counted] or own[:1]
            assert str(batch.parts) == str([part for share in own for part in share.parts])
            assert batch.shares == [number for share in own for number in share.shares]
            assert batch.counted == own[0].counted


def test_padding_follows_the_tokens() -> None:
    """All rows are as wide as the longest one."""
    rows = pad([np.array([5, 1]), np.array([7, 8, 1])], 0)
    assert rows.tolist() == [[5, 1, 0], [7, 8, 1]]


def test_workers_process_equal_shares_of_a_batch_by_tokens_in_one_pass() -> None:
    """All wait for the slowest worker; a second pass over one sentence would take as long as the first."""
    random = np.random.default_rng(1)
    source = random.integers(3, 40, 4000)
    target = np.maximum(source + random.integers(-2, 3, 4000), 1)
    wide = np.maximum(source, target)
    batching = Batching(False, 256, 500, workers=8)
    order = batching.order(source, target, 1, 0)
    ranks = [batching.share(order, rank) for rank in range(8)]
    for shares in zip(*ranks, strict=True):
        assert [len(batch.parts) for batch in shares] == [1] * 8
        counts = [len(batch.parts[0]) for batch in shares]
        widths = [int(wide[batch.parts[0]].max()) for batch in shares]
        assert max(counts) - min(counts) <= 1
        assert max(c * w for c, w in zip(counts, widths, strict=True)) <= 500 + max(widths)
