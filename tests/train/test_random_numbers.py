"""Seeding: the same as torch.manual_seed, at lower cost."""

import traceback

import pytest
import torch

from convs2s.train.random_numbers import seed_generators


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_numbers_are_those_of_torch_manual_seed(seed: int) -> None:
    seed_generators(seed)
    drawn = torch.rand(8)
    torch.manual_seed(seed)
    assert torch.equal(drawn, torch.rand(8))


@pytest.mark.parametrize("used", [True, False])
def test_gpus_are_seeded_where_they_are_used_and_no_traceback_is_formatted(
    monkeypatch: pytest.MonkeyPatch, used: bool
) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: used)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    monkeypatch.setattr(traceback, "format_stack", lambda: pytest.fail("a traceback was formatted"))
    seed_generators(7)
    assert seeds == [7] * used
