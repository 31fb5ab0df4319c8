"""The model in compiled loops equals the plain one, in every precision."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.compiled_model import CompiledModel
from convs2s.decode.ensemble import Ensemble
from convs2s.decode.fast_model import FastModel
from convs2s.decode.int8_linear import Int8Linear, check_int8, quantized
from convs2s.decode.sampling import Sampling
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.decode.token_scores import ANY, NOT_EOS, all_logits
from convs2s.engine import decode_loops
from convs2s.model.initialization import fold_weight_norm
from tests.decode.test_fast_model import CHOSEN, loaded
from tests.golden import NAMES, golden_model
from tests.golden.judge import check_sentence, longest, sources, wanted_hypotheses
from tests.model.small import EOS, PAD, VARIANTS, sentence

SOURCE = torch.stack([sentence(7, 40), torch.cat([sentence(5, 40), torch.tensor([PAD, PAD])])])


def check_steps(compiled: CompiledModel, plain: StepwiseModel, vocabulary: int, tolerance: float) -> None:
    """Assert equal logits and attention over some steps, reordering and dropping rows in between."""
    states, memories = (compiled.start(4), plain.start(4)), (compiled.encode(SOURCE), plain.encode(SOURCE))
    rows = torch.tensor([EOS] * 4)
    for step in range(5):
        scores, attention, one = compiled.step(rows, memories[0], states[0])
        wanted, weights, other = plain.step(rows, memories[1], states[1])
        assert_close(all_logits(scores), wanted, atol=tolerance, rtol=tolerance)
        assert_close(attention, weights, atol=tolerance, rtol=tolerance)
        order = torch.tensor([1, 0, 3, 3] if step < 3 else [2, 3])
        states = (one.select(order), other.select(order)) if step < 4 else states
        rows = 3 + (5 * torch.arange(len(order)) + step) % (vocabulary - 3)
        if step == 3:
            memories = tuple(memory.select(torch.tensor([1])) for memory in memories)  # type: ignore[assignment]


@pytest.mark.parametrize("changes", VARIANTS)
@torch.inference_mode()
def test_every_step_equals_the_plain_models(changes: dict[str, Any]) -> None:
    """Loops only change the order of sums, whether layers attend, change their width, or neither."""
    model = loaded(**changes)
    check_steps(CompiledModel(FastModel(copy.deepcopy(model))), StepwiseModel(model), 50, 3e-6)


@pytest.mark.parametrize("sampled", [False, True])
def test_prefixes_and_samples_are_those_of_the_plain_model(sampled: bool) -> None:
    """The loops rule out all but a given token themselves; a sample is drawn from all logits."""
    model, found = loaded(), []
    settings = BeamSearch(3, 1.0, 0, 3, legacy_eos=False, keep_attention=False)
    for one in (StepwiseModel(model), CompiledModel(FastModel(copy.deepcopy(model)))):
        searcher = Sampling(1).of(settings, [(0, 0), (1, 0)]) if sampled else settings
        found.append(searcher.search(one, SOURCE, [6, 6], [[7, 9], []]))
    for plain, compiled in zip(found[0], found[1], strict=True):
        assert [one.tokens for one in compiled] == [one.tokens for one in plain]
        wanted = [one.log_likelihood for one in plain]
        assert [one.log_likelihood for one in compiled] == pytest.approx(wanted, abs=1e-4)
    assert all(one.tokens[:2] == [7, 9] for one in found[1][0])


@pytest.mark.parametrize(("precision", "tolerance"), [("bfloat16", 0.02), ("int8", 0.02)])
@torch.inference_mode()
def test_other_precisions_are_near_float32(precision: str, tolerance: float) -> None:
    """Both keep about eight bits of every factor, as in `test_fast_model` for bfloat16."""
    exact = loaded()
    rounded = copy.deepcopy(exact)
    fast = FastModel(rounded, Int8Linear) if precision == "int8" else FastModel(rounded.to(torch.bfloat16))
    check_steps(CompiledModel(fast), StepwiseModel(exact), 50, tolerance)
    check_steps(CompiledModel(fast).restricted(CHOSEN), StepwiseModel(exact, CHOSEN), len(CHOSEN), tolerance)


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_every_hypothesis_and_score_is_fairseqs(name: str, beam: int) -> None:
    """As for the plain model, in one batch, whose sentences of 4 to 30 tokens end at different steps."""
    model = copy.deepcopy(golden_model(name))
    fold_weight_norm(model)
    batch = torch.nn.utils.rnn.pad_sequence(sources(name), batch_first=True, padding_value=PAD)
    search = BeamSearch(beam, 1.0, 1, beam, legacy_eos=False, keep_attention=False)
    compiled = FastModel(model).compiled()
    models: list[StepwiseModel | Ensemble] = [compiled, Ensemble([compiled, compiled])]
    for one in models:
        found = search.search(one, batch, longest(sources(name)))
        for hypotheses, wanted in zip(found, wanted_hypotheses(name, beam), strict=True):
            check_sentence(hypotheses, wanted)


@pytest.mark.parametrize("size", [3, 300, 1000])
@pytest.mark.parametrize("allowed", [ANY, NOT_EOS, EOS, 2])
def test_the_likeliest_tokens_are_those_of_topk(size: int, allowed: int) -> None:
    """With and without complete groups of tokens; tokens with equal logits come in ascending order."""
    logits = (torch.arange(20 * size) * 7919 % 10_007 % 501).float().view(20, size) / 50
    logits[::2, :2] += 20  # padding and EOS are the likeliest, which must not hide others of their groups
    logits[5:9, -1] += 30
    count = min(10, size)
    values, tokens, normalizers = (
        torch.empty(20, count),
        torch.empty(20, count, dtype=torch.int64),
        torch.empty(20),
    )
    ones, nothing = np.ones(size, np.float32), np.zeros(size, np.float32)
    decode_loops.likeliest(  # type: ignore[no-untyped-call]
        logits.numpy(), ones[:1].repeat(20), ones, nothing, np.full(20, allowed), values.numpy(),
        tokens.numpy(), normalizers.numpy(), 0, 20,
    )  # fmt: skip
    assert_close(normalizers, logits.logsumexp(dim=1))
    possible = logits.clone()
    possible[:, PAD] = -torch.inf
    possible[:, EOS if allowed == NOT_EOS else PAD] = -torch.inf
    if allowed > PAD:
        possible[:, torch.arange(size) != allowed] = -torch.inf
    wanted, order = possible.sort(dim=1, descending=True, stable=True)
    assert torch.equal(values, wanted[:, :count])
    real = values > -torch.inf
    assert torch.equal(tokens[real], order[:, :count][real])
    assert (tokens[~real] == PAD).all()


def test_quantized_rows_are_near_the_real_ones() -> None:
    """Each row's scale maps its largest magnitude to 127; zeros stay zero, and NaN stays visible."""
    x = torch.tensor([[1.0, -0.5, 0.25, 0.0], [100.0, -127.0, 63.4, 0.6], [0.0, 0.0, 0.0, 0.0]])
    rows, scales = quantized(x)
    assert rows.tolist() == [[127, -64, 32, 0], [100, -127, 63, 1], [0, 0, 0, 0]]
    assert_close(scales, torch.tensor([1 / 127, 1.0, 0.0]))
    assert quantized(torch.tensor([[1.0, torch.nan], [1.0, 2.0]]))[1].isnan().tolist() == [True, False]


def test_int8_is_refused_where_it_would_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch would multiply the numbers one by one."""
    with pytest.raises(ValueError, match="precision int8 is for CPUs, but the device is cuda"):
        check_int8(torch.device("cuda"))
    monkeypatch.setattr("torch.cpu._is_vnni_supported", lambda: False)
    with pytest.raises(ValueError, match="precision int8 needs a CPU with AVX512-VNNI"):
        check_int8(torch.device("cpu"))
