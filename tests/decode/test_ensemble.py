"""Ensembles: mean probabilities, mean attention, one interface."""

import torch
from torch.testing import assert_close

from convs2s.decode.ensemble import Ensemble
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.ids.vocabulary import EOS
from convs2s.model.seq2seq import Seq2Seq
from tests.golden import golden_model, model_params


def member(name: str) -> StepwiseModel:
    """Return a golden model as a member of an ensemble."""
    return StepwiseModel(golden_model(name))


def test_probabilities_and_attention_are_means() -> None:
    """T23: a mean of probabilities, not of their logarithms."""
    members = [member("plain"), member("varied")]
    ensemble, source = Ensemble(members), torch.tensor([[5, 9, 7, EOS], [8, 6, 20, EOS]])
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


def test_the_shortest_position_table_limits_all() -> None:
    """The sentence must fit every member."""
    shorter = Seq2Seq(model_params("plain").model_copy(update={"max_positions": 9}), 352, 376, 0, 0.0)
    endless = Seq2Seq(model_params("plain").model_copy(update={"source_positions": False}), 352, 376, 0, 0.0)
    assert Ensemble([member("plain"), StepwiseModel(shorter)]).max_source_tokens == 8
    assert Ensemble([member("plain"), StepwiseModel(shorter)]).max_target_tokens == 8
    assert Ensemble([StepwiseModel(endless)]).max_source_tokens is None
