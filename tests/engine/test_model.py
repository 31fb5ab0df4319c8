"""The CPU engine equals the plain model: every step in every precision, and all that search asks of it."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close

from convs2s.decode.sampling import Sampler, Sampling
from convs2s.engine.decode import loops as decode_loops
from convs2s.engine.decode.linear_maps import (
    FloatMap,
    Int8Map,
    ScaledProduct,
    can_pack,
    largest_input,
    pack_convolution,
    pack_linear,
    quantize,
)
from convs2s.engine.decode.model import EngineModel, EngineScores, round_up
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.precision import Precision, Wanted
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search.choose_model import choose_model
from convs2s.search.search import SearchModel
from convs2s.search.stepwise_model import StepwiseModel
from convs2s.search.token_scores import Allowed, all_logits, find_best
from tests.decode.parrot import make_search
from tests.model.small import EOS, PAD, VARIANTS, sentence, small_model, small_params

SOURCE = torch.stack([sentence(7, 40), torch.cat([sentence(5, 40), torch.tensor([PAD, PAD])])])
CHOSEN = torch.tensor([0, 1, 2, 7, 30, 49])
EXACT, ROUNDED = 3e-6, 0.02  # bfloat16 and int8 keep about eight bits of every factor
CASES: list[tuple[Precision, dict[str, Any], float]] = [("float32", changes, EXACT) for changes in VARIANTS]
CASES += [("bfloat16", changes, ROUNDED) for changes in VARIANTS[::2]]
BITS = 1.0 if largest_input() == 127 else 1.5  # inputs of 7 bits are rounded more
CASES += [("int8", changes, BITS * ROUNDED) for changes in VARIANTS[::2]]


def loaded(**changes: Any) -> Seq2Seq:
    """Return the small model as loaded from disk."""
    return as_loaded(small_model(**changes))


def as_loaded(model: Seq2Seq) -> Seq2Seq:
    """Return a model as loaded from disk: weight norm folded in, here with nonzero biases."""
    model.eval().requires_grad_(False)
    fold_weight_norm(model)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.copy_(0.3 * torch.sin(torch.arange(len(parameter)) + len(name)))
    return model


class Unchanged(FloatMap):
    """A map that returns its input."""

    def __init__(self, size: int) -> None:
        super().__init__(torch.eye(size), None, torch.float32, packs=False)

    def product(self, x: NDArray[Any]) -> ScaledProduct:
        return ScaledProduct(x, np.ones(len(x), np.float32), self.ones, self.zeros)


def check_steps(engine: SearchModel, plain: SearchModel, vocabulary: int, tolerance: float) -> None:
    """Assert equal logits and attention over some steps, reordering and dropping rows in between."""
    states = [m.start(4) for m in (engine, plain)]
    memories = [m.encode(SOURCE) for m in (engine, plain)]
    rows = torch.tensor([EOS] * 4)
    for step in range(5):
        scores, attention, one = engine.step(rows, memories[0], states[0])
        expected, weights, other = plain.step(rows, memories[1], states[1])
        assert_close(all_logits(scores), expected, atol=tolerance, rtol=tolerance)
        assert_close(attention, weights, atol=tolerance, rtol=tolerance)
        order = torch.tensor([1, 0, 3, 3] if step < 3 else [2, 3])
        states = [one.select(order), other.select(order)] if step < 4 else states
        rows = 3 + (5 * torch.arange(len(order)) + step) % (vocabulary - 3)
        if step == 3:
            memories = [memory.select(torch.tensor([1])) for memory in memories]


@pytest.mark.parametrize("chosen", [None, CHOSEN], ids=["all tokens", "some tokens"])
@pytest.mark.parametrize(("precision", "changes", "tolerance"), CASES)
@torch.inference_mode()
def test_every_step_equals_the_plain_models(
    precision: Precision, changes: dict[str, Any], tolerance: float, chosen: torch.Tensor | None
) -> None:
    """The engine has its own copy of every kind of layer, and of the softmax over a selection (§5.4)."""
    model = loaded(**changes)
    engine, plain = EngineModel(model, precision), StepwiseModel(model, chosen)
    if chosen is None:
        check_steps(engine, plain, 50, tolerance)
        assert engine.restrict(CHOSEN).output_map.outputs == len(CHOSEN)
    else:
        check_steps(engine.restrict(chosen), plain, len(chosen), tolerance)
        assert "output_map" not in vars(engine), "the whole output layer was packed"


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("float32", EXACT), ("bfloat16", ROUNDED), ("int8", BITS * ROUNDED)]
)
@torch.inference_mode()
def test_rows_that_are_added_change_nothing(precision: Precision, tolerance: float) -> None:
    """Products have more rows than there are source positions or hypotheses, where these are many."""
    lengths = [2, 3, 4, 5, 6, 7, 8]
    source = torch.full((7, 8), PAD)
    for row, length in enumerate(lengths):
        source[row, :length] = sentence(length, 40)
    assert (round_up(sum(lengths)), round_up(7 * 3)) == (36, 22)
    model = loaded()
    engine, plain = EngineModel(model, precision), StepwiseModel(model)
    tokens = 3 + torch.arange(21) % 40
    one, other = engine.start(21), plain.start(21)
    memory, expected_memory = engine.encode(source), plain.encode(source)
    for order in (torch.arange(21).flip(0).view(7, 3).flip(0).flatten(), torch.arange(21)):
        scores, attention, one = engine.step(tokens, memory, one)
        expected, weights, other = plain.step(tokens, expected_memory, other)
        assert_close(all_logits(scores), expected, atol=tolerance, rtol=tolerance)
        for row, length in enumerate(lengths):  # what follows is not written
            part = slice(3 * row, 3 * row + 3)
            assert_close(attention[part, :length], weights[part, :length], atol=tolerance, rtol=tolerance)
        one, other = one.select(order), other.select(order)


def test_few_rows_are_added() -> None:
    """Each number of rows costs half a MiB per product, and added rows cost time: at most an eighth."""
    sizes = range(1, 641)
    assert all(rows <= round_up(rows) <= rows * 9 / 8 for rows in sizes)
    assert len(set(map(round_up, sizes))) == 58
    assert all(round_up(rows) == rows for rows in range(17))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@torch.inference_mode()
def test_rows_of_the_output_layer_do_not_depend_on_their_block(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large vocabularies have blocks of 96 rows instead of 32, which may not change a translation."""
    model = as_loaded(Seq2Seq(small_params(output_embedding_size=512), 40, 20_000, PAD, dropout=0.0))
    engine = EngineModel(model, precision)
    sizes = list[int]()
    product = engine.output_map.product

    def multiply(x: NDArray[Any]) -> ScaledProduct:
        sizes.append(len(x))
        return product(x)

    monkeypatch.setattr(engine.output_map, "product", multiply)
    memory = engine.encode(SOURCE)
    for rows, blocks in ((95, [96]), (96, [96]), (97, [96, 8]), (200, [96, 96, 16])):
        tokens = 3 + 7 * torch.arange(rows)
        scores, _, _ = engine.step(tokens, memory.select(torch.arange(rows) % 2), engine.start(rows))
        totals = np.zeros((rows, 1), np.float32)
        allowed = Allowed(np.full(rows, -1), [PAD])
        found = find_best(scores, totals, allowed, 10)
        assert sizes == blocks
        with monkeypatch.context() as patch:
            patch.setattr("convs2s.engine.decode.model.FEW_ROWS", 32)
            expected = find_best(scores, totals, allowed, 10)
        assert max(sizes[len(blocks) :]) == 32
        # Some processors round by the number of rows.
        for part, expected_part in zip(found, expected, strict=True):
            np.testing.assert_allclose(part, expected_part, rtol=0 if precision == "int8" else 1e-6)
        sizes.clear()


def test_the_best_continuations_are_those_of_the_plain_search() -> None:
    """Equal ones are ordered by row; hypotheses may be impossible, and tokens fewer than asked for."""
    draw = torch.Generator().manual_seed(1)
    for beams, size, count in ((1, 50, 2), (3, 50, 6), (5, 7, 10), (3, 3, 8)):
        logits = torch.randint(0, 1000, (4, size), generator=draw).float() / 100
        logits = logits.repeat_interleave(beams, dim=0)  # rows of a sentence have the same
        logits += torch.arange(size) / 3000  # no two tokens do
        totals = torch.randint(-4, 0, (4, beams), generator=draw).float().numpy()
        totals[2, beams - 1 :] = -np.inf
        only = np.full(4 * beams, -1)
        only[-1] = 2
        allowed = Allowed(only, [PAD])
        scores = EngineScores(Unchanged(size), logits.numpy(), len(logits))
        found = find_best(scores, totals, allowed, count)
        expected = [part.numpy() for part in find_best(logits.clone(), totals, allowed, count)]
        possible = expected[0] > -np.inf
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
        for one, other in zip(found[1:], expected[1:], strict=True):
            assert one.dtype == other.dtype
            assert (one[possible] == other[possible]).all()


def test_a_hypothesis_without_a_number_comes_first() -> None:
    """Search looks for NaN among the best continuations only."""
    logits = torch.arange(40.0).view(4, 10).numpy()
    totals = np.array([[0.0, 0.0], [0.0, np.nan]], np.float32)
    scores = EngineScores(Unchanged(10), logits, 4)
    sums, rows, _ = find_best(scores, totals, Allowed(np.full(4, -1), [PAD]), 3)
    assert np.isnan(sums).tolist() == [[False, False, False], [True, True, True]]
    assert rows[1].tolist() == [3, 3, 3]


def test_weights_that_cannot_be_packed_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """On other processors, products are PyTorch's own."""
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert not can_pack(torch.float32)
    model = loaded()
    check_steps(EngineModel(model, "float32"), StepwiseModel(model), 50, EXACT)


@pytest.mark.parametrize("sampled", [False, True])
def test_prefixes_and_samples_are_those_of_the_plain_model(sampled: bool) -> None:
    """The loops rule out all but a given token themselves; a sample is drawn from all logits."""
    model = loaded()
    found = []
    search = make_search(3)
    for one in (StepwiseModel(model), EngineModel(model, "float32")):
        searcher = Sampler(search.params, False, Sampling(seed=1), [(0, 0), (1, 0)]) if sampled else search
        found.append(searcher.search(one, SOURCE, [6, 6], [[7, 9], []]))
    for plain, engine in zip(*found, strict=True):
        assert [one.tokens for one in engine] == [one.tokens for one in plain]
        expected = [one.log_likelihood for one in plain]
        assert [one.log_likelihood for one in engine] == pytest.approx(expected, abs=1e-4)
    assert all(one.tokens[:2] == [7, 9] for one in found[1][0])


@pytest.mark.parametrize("size", [3, 300, 1000])
@pytest.mark.parametrize(("only", "excluded"), [(-1, [PAD]), (-1, [PAD, EOS]), (EOS, [PAD]), (2, [PAD, EOS])])
def test_the_likeliest_tokens_are_those_of_topk(size: int, only: int, excluded: list[int]) -> None:
    """The last group of tokens may be incomplete. Tokens with equal logits come in ascending order."""
    logits = (torch.arange(20 * size) * 7919 % 10_007 % 501).float().view(20, size) / 50
    logits[::2, :2] += 20  # padding and EOS are the likeliest, which must not hide others of their groups
    logits[5:9, -1] += 30
    count = min(10, size)
    values = torch.empty(20, count)
    tokens = torch.empty(20, count, dtype=torch.int64)
    normalizers = torch.empty(20)
    ones = np.ones(size, np.float32)
    nothing = np.zeros(size, np.float32)
    decode_loops.find_likeliest(
        logits.numpy(), ones[:1].repeat(20), ones, nothing, np.full(20, only), np.array(excluded),
        values.numpy(), tokens.numpy(), normalizers.numpy(), 0, 20,
    )  # fmt: skip
    assert_close(normalizers, logits.logsumexp(dim=1))
    possible = logits.clone()
    if only < 0:
        possible[:, excluded] = -torch.inf
    else:
        possible[:, torch.arange(size) != only] = -torch.inf
    expected, order = possible.sort(dim=1, descending=True, stable=True)
    assert torch.equal(values, expected[:, :count])
    real = values > -torch.inf
    assert torch.equal(tokens[real], order[:, :count][real])
    assert (tokens[~real] == PAD).all()


def test_quantized_rows_are_near_the_real_ones() -> None:
    """Each row's scale maps its largest magnitude to the limit; zeros stay zero, and NaN stays visible."""
    x = np.array([[1.0, -0.5, 0.25, 0.0], [100.0, -127.0, 63.4, 0.6], [0.0, 0.0, 0.0, 0.0]], np.float32)
    rows, scales = quantize(x, 127)
    assert (rows.astype(int) - 128).tolist() == [[127, -63, 32, 0], [100, -127, 63, 1], [0, 0, 0, 0]]
    np.testing.assert_allclose(scales, [1 / 127, 1.0, 0.0], rtol=1e-6)
    rows, scales = quantize(x, 63)
    assert (rows.astype(int) - 64).tolist() == [[63, -31, 16, 0], [50, -63, 31, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(scales, [1 / 63, 127 / 63, 0.0], rtol=1e-6)
    with_nan = np.array([[1.0, np.nan], [1.0, 2.0]], np.float32)
    assert np.isnan(quantize(with_nan, 63)[1]).tolist() == [True, False]


@pytest.mark.parametrize("rows", [1, 5, 130])
@pytest.mark.parametrize("inputs", [3, 256, 2048])
def test_sums_of_8_bit_products_are_exact(rows: int, inputs: int) -> None:
    """With the largest factors, an instruction that adds pairs in 16 bits would saturate.

    Sums that float32 holds are exact. With AMX, oneDNN makes a float32 of longer ones before it subtracts the
    zero point's part, which rounds once.
    """
    limit = largest_input()
    numbers = torch.arange(rows * inputs).view(rows, inputs) * 7919 % (2 * limit + 1) - limit
    weights = torch.arange(72 * inputs).view(72, inputs) * 104729 % 255 - 127
    numbers[-1] = limit
    numbers[:, 0] = limit
    weights[-1] = 127
    weights[:, 0] = 127
    transposed = weights.float().t().contiguous().t()  # as folded maps have them
    product = Int8Map(transposed, None).product(numbers.float().numpy())
    rounding = 2.0**-24 * (2 * limit + 1) * 127 * inputs
    assert abs(product.numbers.astype(int) - (numbers @ weights.t()).numpy()).max() <= rounding
    np.testing.assert_allclose(product.row_scales, np.ones(rows), rtol=1e-6)
    np.testing.assert_allclose(product.scales, np.ones(72), rtol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 5, 33, 130])
@pytest.mark.parametrize(("inputs", "outputs"), [(3, 1), (64, 72), (192, 384), (256, 2001)])
def test_a_convolution_of_width_1_is_a_linear_map(rows: int, inputs: int, outputs: int) -> None:
    """Either may be faster for 8-bit weights; inputs have 7 bits, as not all processors add 8 exactly."""
    generator = torch.Generator().manual_seed(1)
    weight = torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8, generator=generator)
    numbers = torch.randint(1, 128, (rows, inputs), dtype=torch.uint8, generator=generator)
    expected = (numbers.int() - 64) @ weight.t().int()
    assert torch.equal(pack_linear(weight, 64)(numbers), expected.float())
    assert torch.equal(pack_convolution(weight, 64)(numbers), expected.float())


def test_device_and_precision_choose_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU the engine, elsewhere the plain model; int8 only on x86 processors."""
    kinds: list[Wanted] = ["float32", "bfloat16"]
    for precision in kinds:
        assert isinstance(choose_model(loaded(), precision, torch.device("cpu")), EngineModel)
        elsewhere = choose_model(copy.deepcopy(loaded()), precision, torch.device("meta"))
        assert isinstance(elsewhere, StepwiseModel)
        assert str(elsewhere.output_biases.dtype) == f"torch.{precision}"
    with pytest.raises(ValueError, match="precision int8 is for CPUs, but the device is meta"):
        choose_model(loaded(), "int8", torch.device("meta"))
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(ValueError, match="precision int8 is for x86 processors, found aarch64"):
        choose_model(loaded(), "int8", torch.device("cpu"))
