"""Ensembles: mean probabilities, mean attention, one interface."""

import math
from typing import Any

import torch
from torch.testing import assert_close

from convs2s.ids.vocabulary import EOS
from convs2s.search.ensemble import Ensemble, log_mean
from convs2s.search.stepwise_model import StepwiseModel
from tests.model.small import small_model


@torch.no_grad()
def member(preference: float = 0.0, **changes: Any) -> StepwiseModel:
    """Return the small model, with changes, whose output layer prefers other tokens for each preference."""
    model = small_model(**changes).eval()
    bias = model.output_layer.bias
    bias.copy_(3 * torch.sin(torch.arange(len(bias)) + preference))
    return StepwiseModel(model)


@torch.inference_mode()
def test_probabilities_and_attention_are_means() -> None:
    """T23: a mean of probabilities, not of their logarithms."""
    members = [member(0.0), member(1.0, attention=[True, True, True])]
    ensemble = Ensemble(members)
    source = torch.tensor([[5, 9, 7, EOS], [8, 6, 20, EOS]])
    memory, state = ensemble.encode(source), ensemble.start(2)
    singles = [(m, m.encode(source), m.start(2)) for m in members]
    for tokens in (torch.tensor([EOS, EOS]), torch.tensor([7, 11])):
        logits, attention, state = ensemble.step(tokens, memory, state)
        steps = [m.step(tokens, memory, state) for m, memory, state in singles]
        singles = [(m, memory, step[2]) for (m, memory, _), step in zip(singles, steps, strict=True)]
        mean = (steps[0][0].softmax(1) + steps[1][0].softmax(1)) / 2
        assert_close(logits.exp(), mean)
        assert_close(mean.sum(1), torch.ones(2))
        assert_close(attention, (steps[0][1] + steps[1][1]) / 2)


def test_the_mean_is_that_of_torch_to_the_last_bit() -> None:
    """It takes less memory, and must not change the translations of an ensemble, on whatever machine."""
    generator = torch.Generator().manual_seed(1)
    for members, rows, entries in ((1, 2, 9), (2, 7, 50), (3, 5, 701), (8, 10, 1003)):
        logits = 4 * torch.randn(members, rows, entries, generator=generator)
        logits[:, 0, 3] = -torch.inf  # in all members, and in one
        logits[0, 1, 2] = -torch.inf
        logs = torch.log_softmax(logits, dim=2)
        expected = torch.logsumexp(logs, dim=0) - math.log(members)
        assert torch.equal(log_mean(logs), expected)


def test_the_shortest_position_table_limits_all() -> None:
    """A sentence needs a position in every member, and EOS needs one as well."""
    ensemble = Ensemble([member(), member(max_positions=9)])
    assert (ensemble.max_source_tokens, ensemble.max_target_tokens) == (8, 8)


def test_members_without_positions_set_no_limit() -> None:
    """A model without position embeddings takes a source of any length."""
    assert Ensemble([member(source_positions=False)]).max_source_tokens is None
