"""The fast model equals the plain one, for every kind of layer and for real fairseq weights."""

import copy
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.fast_model import FastModel
from convs2s.decode.packed_linear import can_pack
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.seq2seq import Seq2Seq
from tests.golden import NAMES, golden_model
from tests.golden.judge import check_sentence, longest, sources, wanted_hypotheses
from tests.model.small import EOS, PAD, VARIANTS, sentence, small_model

CHOSEN = torch.tensor([0, 1, 2, 7, 30, 49])


def loaded(**changes: Any) -> Seq2Seq:
    """Return the small model as loaded from disk: weight norm folded in, with nonzero biases."""
    model = small_model(**changes).eval().requires_grad_(False)
    fold_weight_norm(model)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.copy_(0.3 * torch.sin(torch.arange(len(parameter)) + len(name)))
    return model


def check_steps(fast: StepwiseModel, plain: StepwiseModel, vocabulary: int, tolerance: float) -> None:
    """Assert equal logits and attention over some steps, reordering and dropping rows in between."""
    source = torch.stack([sentence(7, 40), torch.cat([sentence(5, 40), torch.tensor([PAD, PAD])])])
    models = (fast, plain)
    states, memories = [m.start(4) for m in models], [m.encode(source) for m in models]
    rows = torch.tensor([EOS] * 4)
    for step in range(5):
        logits, attention, one = fast.step(rows, memories[0], states[0])
        wanted, weights, other = plain.step(rows, memories[1], states[1])
        assert_close(logits, wanted, atol=tolerance, rtol=tolerance)
        assert_close(attention, weights, atol=tolerance, rtol=tolerance)
        order = torch.tensor([1, 0, 3, 3] if step < 3 else [2, 3])
        states = [one.select(order), other.select(order)] if step < 4 else states
        rows = 3 + (5 * torch.arange(len(order)) + step) % (vocabulary - 3)
        if step == 3:
            memories = [memory.select(torch.tensor([1])) for memory in memories]


@pytest.mark.parametrize("changes", VARIANTS)
def test_every_step_equals_the_plain_models(changes: dict[str, Any]) -> None:
    """Maps folded into the source and packed weights only change the order of sums (§3.3)."""
    model = loaded(**changes)
    check_steps(FastModel(copy.deepcopy(model)), StepwiseModel(model), 50, 2e-6)


def test_bfloat16_is_as_exact_as_the_plain_model() -> None:
    """Both round to eight bits, at different points: their errors against float32 are similar."""
    exact = loaded()
    rounded = copy.deepcopy(exact).to(torch.bfloat16)
    check_steps(StepwiseModel(copy.deepcopy(rounded)), StepwiseModel(exact), 50, 0.02)
    check_steps(FastModel(rounded), StepwiseModel(exact), 50, 0.02)


def test_a_fast_model_over_some_tokens_equals_the_plain_one() -> None:
    """Vocabulary selection (§5.4) shares all weights but the tables of tokens."""
    model = loaded()
    fast, plain = FastModel(copy.deepcopy(model)), StepwiseModel(model)
    check_steps(fast.restricted(CHOSEN), plain.restricted(CHOSEN), len(CHOSEN), 2e-6)
    assert fast.restricted(CHOSEN).seq2seq is fast.seq2seq
    assert "output" not in vars(fast), "the whole output layer was packed, though nothing needed it"


def test_weights_that_cannot_be_packed_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """On other processors, only the folding remains."""
    model = loaded()
    plain = StepwiseModel(copy.deepcopy(model))
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert not can_pack(model.output_layer.weight)
    check_steps(FastModel(model), plain, 50, 2e-6)


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_every_hypothesis_and_score_is_fairseqs(name: str, beam: int) -> None:
    """As for the plain model, in one batch, whose sentences of 4 to 30 tokens end at different steps."""
    model = copy.deepcopy(golden_model(name))  # the fast model changes it, and other tests share it
    fold_weight_norm(model)
    batch = torch.nn.utils.rnn.pad_sequence(sources(name), batch_first=True, padding_value=PAD)
    search = BeamSearch(beam, 1.0, 1, beam, legacy_eos=False, keep_attention=False)
    found = search.search(FastModel(model), batch, longest(sources(name)))
    for hypotheses, wanted in zip(found, wanted_hypotheses(name, beam), strict=True):
        check_sentence(hypotheses, wanted)
