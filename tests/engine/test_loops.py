"""Arithmetic in compiled loops, compared with numpy and PyTorch."""

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from convs2s.engine.loops import exp, from_float32, random_bits, to_float32


@njit
def exponentials(x: NDArray[np.float32], y: NDArray[np.float32]) -> None:
    for i in range(len(x)):
        y[i] = exp(x[i])


@njit
def rounded(x: NDArray[np.float32], y: NDArray[np.uint16], z: NDArray[np.float32]) -> None:
    for i in range(len(x)):
        y[i] = from_float32(x[i], y[i])
        z[i] = to_float32(y[i])


@njit
def bits(x: NDArray[np.uint32], first: int, second: int) -> None:
    for i in range(len(x)):
        x[i] = random_bits(i, first, second)


def test_exp_is_within_3e_7_and_keeps_nan() -> None:
    """The softmax and the gates are computed with it."""
    x = np.linspace(-87, 88, 100_001, dtype=np.float32)
    y = np.empty_like(x)
    exponentials(x, y)
    assert np.abs(y / np.exp(x.astype(np.float64)) - 1).max() < 3e-7 + np.abs(x).max() * 6e-8
    extreme = np.array([-1e30, -np.inf, np.nan, 0.0, 89.0, 178.0, np.inf], np.float32)
    found = np.empty_like(extreme)
    exponentials(extreme, found)
    assert found[0] == found[1] < 1e-37
    assert 1e38 < found[4] == found[5] == found[6] < np.inf  # a gate that is closed stays closed
    assert np.isnan(found[2])
    assert found[3] == 1.0


def test_bfloat16_is_rounded_as_in_pytorch() -> None:
    """Values round to the nearest, ties to even; infinities and NaN stay."""
    x = torch.cat(
        [torch.randn(10_000) * 10.0 ** torch.randint(-30, 30, (10_000,)), torch.tensor([0.0, -0.0])]
    )
    ties = torch.tensor([1.0 + 2**-8, 1.0 + 3 * 2**-8, torch.inf, -torch.inf, torch.nan])
    x = torch.cat([x, ties])
    found = np.empty(len(x), np.uint16)
    back = np.empty(len(x), np.float32)
    rounded(x.numpy(), found, back)
    wanted = x.bfloat16()
    assert torch.equal(torch.from_numpy(back[:-1]), wanted.float()[:-1])
    assert np.isnan(back[-1])


def test_random_bits_are_uniform_and_independent_of_neighbors_and_keys() -> None:
    """Each of the 32 bits is set half of the time, whatever it is at the next index or under another key."""
    draws = np.empty((5, 1 << 18), np.uint32)
    keys = np.random.default_rng(1).integers(2**32, size=(5, 2)).tolist()
    for row, (first, second) in zip(draws, keys, strict=True):
        bits(row, first, second)
    limit = 5 * 0.5 / np.sqrt(draws.shape[1])
    for i, row in enumerate(draws):
        assert np.abs(share_of_ones(row) - 0.5).max() < limit
        assert np.abs(share_of_ones(row[1:] ^ row[:-1]) - 0.5).max() < limit
        for j in range(i):
            assert np.abs(share_of_ones(row ^ draws[j]) - 0.5).max() < limit
            # Keys must not give shifted copies of one sequence.
            assert np.isin(row[:100], draws[j, : 1 << 14]).sum() <= 1


def share_of_ones(numbers: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return how often each of the 32 bits is set, in memory order."""
    ones: NDArray[np.int64] = (
        np.unpackbits(numbers.view(np.uint8)).reshape(-1, 32).sum(axis=0, dtype=np.int64)
    )
    return ones / len(numbers)
