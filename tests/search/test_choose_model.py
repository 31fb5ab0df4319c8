"""A CPU decodes with the engine only where it computes what the model does, on this very model."""

import warnings
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from benchmarks.synthetic import narrow
from convs2s.engine.decode.model import EngineModel
from convs2s.ids.vocabulary import PAD
from convs2s.model import multistep_attention
from convs2s.model.decoder import DecoderBlock
from convs2s.model.glu_block import EncoderBlock, GluConvolution, Residual
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.multistep_attention import Memory
from convs2s.model.precision import Wanted, choose_precision
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search import choose_model as choose_model_module
from convs2s.search.choose_model import TokenSample, choose_model, run
from convs2s.search.stepwise_model import StepwiseModel
from tests.edits.table import LOCAL_EDITS, LocalEdit
from tests.edits.tree import edit_here
from tests.engine.test_model import loaded
from tests.model.small import VARIANTS
from tests.presets import params_of

CPU = torch.device("cpu")
FORWARD = GluConvolution.forward
PRECISIONS: list[Wanted] = ["float32", "bfloat16", "int8"]


def choose(model: Seq2Seq, wanted: Wanted = "float32") -> Any:
    return choose_model(model, wanted, CPU)


def glu_with_tanh(x: Tensor, dim: int) -> Tensor:
    values, gates = x.chunk(2, dim=dim)
    return values * torch.tanh(gates)


def gated_by_tanh(self: GluConvolution, x: Tensor, left: int, right: int) -> Tensor:
    with mock.patch.object(nn.functional, "glu", glu_with_tanh):
        return FORWARD(self, x, left, right)


@pytest.mark.parametrize("wanted", PRECISIONS)
@pytest.mark.parametrize("changes", VARIANTS)
def test_the_engine_decodes_a_model_as_it_is(changes: dict[str, Any], wanted: Wanted) -> None:
    """In every precision and for every kind of layer there is no warning, as nothing was edited."""
    with warnings.catch_warnings(action="error"):
        model = choose(loaded(**changes), wanted)
    assert isinstance(model, EngineModel)
    assert model.precision == wanted


@pytest.mark.parametrize("wanted", PRECISIONS[:2])
def test_the_plain_model_decodes_an_edited_one(monkeypatch: pytest.MonkeyPatch, wanted: Wanted) -> None:
    """It must do so in bfloat16 as well, whose rounding alone is larger than what some edits change."""
    monkeypatch.setattr(GluConvolution, "forward", gated_by_tanh)
    with pytest.warns(UserWarning, match=r"logits differ by [\d.e-]+ of the largest.*engine/decode/model.py"):
        assert isinstance(choose(loaded(), wanted), StepwiseModel)


def test_an_edit_of_one_layer_or_one_side_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit may be in the encoder's blocks, in the decoder's, or in the residual connection of both."""
    for kind in (EncoderBlock, DecoderBlock, Residual):
        plain = kind.forward

        def forward(self: Any, *arguments: Any, plain: Any = plain) -> Any:
            result = plain(self, *arguments)
            if isinstance(result, Tensor):
                return 1.01 * result
            return 1.01 * result[0], *result[1:]

        with monkeypatch.context() as patch:
            patch.setattr(kind, "forward", forward)
            with pytest.warns(UserWarning, match="differ by"):
                assert isinstance(choose(loaded()), StepwiseModel)


@pytest.mark.parametrize("edit", LOCAL_EDITS, ids=lambda edit: edit.name)
def test_an_edit_that_acts_somewhere_is_noticed(monkeypatch: pytest.MonkeyPatch, edit: LocalEdit) -> None:
    """From a length or a position on, at padding, for one sentence: elsewhere all would be as before."""
    model = loaded(max_positions=1024)
    edit_here(monkeypatch, edit.file, edit.replacements)
    with pytest.warns(UserWarning, match="differ by"):
        assert isinstance(choose(model), StepwiseModel)


def test_rounding_that_a_model_enlarges_is_no_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a model is as far from itself in float64. An edit of it is noticed all the same."""
    torch.manual_seed(1)
    model = Seq2Seq(narrow(params_of("wmt14-en-de-paper").model, 8), 60, 60, PAD, dropout=0.0).eval()
    fold_weight_norm(model)
    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="differ by"):
        patch.setattr(choose_model_module, "ROUNDING", 0)
        choose(model)
    with warnings.catch_warnings(action="error"):
        assert isinstance(choose(model), EngineModel)
    for edit in LOCAL_EDITS[:3]:
        with monkeypatch.context() as patch, pytest.warns(UserWarning, match="differ by"):
            edit_here(patch, edit.file, edit.replacements)
            assert isinstance(choose(model), StepwiseModel)


def test_where_the_engine_fails_the_plain_model_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine may fail with any error, for example where an edit has removed an attribute."""
    model = loaded()
    monkeypatch.setattr(EngineModel, "encode", lambda *_: model.positions)
    with pytest.warns(UserWarning, match="it ends in AttributeError: 'Seq2Seq' object has no attribute"):
        assert isinstance(choose(model), StepwiseModel)


def test_the_engine_does_not_decode_a_model_with_weights_that_it_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A learned scale that is still 1 makes no difference yet, but will once it is trained."""
    model = loaded()
    block: Any = model.decoder.blocks[1]
    block.gain = nn.Parameter(torch.ones(()))
    plain = Residual.forward
    gain = {block.residual: block.gain}
    monkeypatch.setattr(
        Residual, "forward", lambda self, *arguments: plain(self, *arguments) * gain.get(self, 1.0)
    )
    with pytest.warns(UserWarning, match=r"it does not read decoder\.blocks\.1\.gain"):
        assert isinstance(choose(model), StepwiseModel)


def test_weights_that_decoding_does_not_read_are_an_error() -> None:
    """They were trained, so without them another model would translate. A counter is not trained."""
    model = loaded()
    model.encoder.register_buffer("batches", torch.tensor(3))
    choose(model)
    model.encoder.register_buffer("statistics", torch.ones(3))
    with pytest.raises(
        ValueError, match=r"to read all weights, found encoder\.statistics, which it does not"
    ):
        choose(model)
    for number in range(4):
        model.encoder.register_buffer(f"more{number}", torch.ones(3))
    with pytest.raises(ValueError, match=r"found encoder\.more0, encoder\.more1, encoder\.more2 and 2 mo"):
        choose(model)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_decoder_that_differs_step_by_step_is_an_error(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """Training sees all positions at once, so such a search would use another model than the trained one."""
    plain = DecoderBlock.forward

    def forward(self: DecoderBlock, x: Tensor, g: Tensor, memory: Any, window: Any = None) -> Any:
        output, weights, window = plain(self, x, g, memory, window)
        mean = output.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]  # of all positions so far
        return mean, weights, window

    monkeypatch.setattr(DecoderBlock, "forward", forward)
    monkeypatch.setenv("CONVS2S_ENGINE", "plain" if device == "cpu" else "auto")
    monkeypatch.setattr(
        "convs2s.search.choose_model.choose_precision", lambda *_: choose_precision("float32", CPU)
    )
    with pytest.raises(
        ValueError, match="same position by position as in one pass, found that logits differ"
    ):
        choose_model(loaded(), "float32", torch.device(device))


def test_a_fault_of_sentences_that_leave_the_batch_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training never drops a sentence, search does: those that stay must keep what they attend to."""

    def select(self: Memory, sentences: Tensor) -> Memory:
        padding = None if self.padding is None else self.padding[sentences]
        return Memory(self.keys[sentences], self.values[sentences], padding, self.lengths[: len(sentences)])

    monkeypatch.setattr(Memory, "select", select)
    monkeypatch.setenv("CONVS2S_ENGINE", "plain")
    with pytest.raises(ValueError, match="same position by position as in one pass"):
        choose(loaded())


def test_rounding_of_another_device_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step and a whole pass may run different kernels there, which round differently."""
    plain = DecoderBlock.forward

    def forward(self: DecoderBlock, x: Tensor, g: Tensor, memory: Any, window: Any = None) -> Any:
        output, weights, following = plain(self, x, g, memory, window)
        return output * (1.0 if window is None else 1.0005), weights, following

    monkeypatch.setattr(DecoderBlock, "forward", forward)
    model = loaded()
    sample = TokenSample(model)
    assert sample.find_fault(StepwiseModel(model)) is not None
    monkeypatch.setenv("CONVS2S_ENGINE", "plain")
    assert isinstance(choose(model), StepwiseModel)


def test_damaged_weights_are_left_to_search() -> None:
    """NaN does not equal NaN, but the comparison must not take damage for an edit. The search reports it."""
    model = loaded()
    model.decoder.output_map.bias[0] = torch.nan
    with warnings.catch_warnings(action="error"):
        assert isinstance(choose(model), EngineModel)


def test_a_variable_turns_the_engine_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain model then decodes without a warning, in any precision that it supports."""
    monkeypatch.setenv("CONVS2S_ENGINE", "plain")
    with warnings.catch_warnings(action="error"):
        assert isinstance(choose(loaded()), StepwiseModel)
        assert choose(loaded(), "bfloat16").output_biases.dtype == torch.bfloat16
    with pytest.raises(
        ValueError, match=r"int8 is the fast decoder's, which is not used here \(CONVS2S_ENGI"
    ):
        choose(loaded(), "int8")
    monkeypatch.setenv("CONVS2S_ENGINE", "")
    assert isinstance(choose(loaded()), EngineModel)
    monkeypatch.setenv("CONVS2S_ENGINE", "slow")
    with pytest.raises(ValueError, match="CONVS2S_ENGINE: expected auto or plain, found 'slow'"):
        choose(loaded())


def test_the_sample_fits_small_tables() -> None:
    """A model may have few positions and only special tokens; the sample must not index beyond its tables."""
    model = loaded(max_positions=4)
    assert (model.max_source_tokens, model.max_target_tokens) == (3, 3)
    sample = TokenSample(model)
    assert sample.padded.source.shape[1] == sample.alone.source.shape[1] == sample.padded.places.shape[1] == 3
    with warnings.catch_warnings(action="error"):
        assert isinstance(choose(model), EngineModel)


def test_the_sample_reaches_the_oldest_input_of_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has as many steps as the widest kernel has inputs, seven here; the edit ignores the oldest."""
    model = loaded(decoder_kernels=[3, 7, 1])

    def forward(self: GluConvolution, x: Tensor, left: int, right: int) -> Tensor:
        if self.kernel_width == 7:
            weight = self.window_map.weight.clone()
            weight[:, : x.shape[2]] = 0
            return nn.functional.glu(
                nn.functional.linear(windows(x, left, 7), weight, self.window_map.bias), dim=-1
            )
        return FORWARD(self, x, left, right)

    monkeypatch.setattr(GluConvolution, "forward", forward)
    with pytest.warns(UserWarning, match="differ by"):
        assert isinstance(choose(model), StepwiseModel)


def windows(x: Tensor, left: int, width: int) -> Tensor:
    padded = nn.functional.pad(x, (0, 0, left, 0))
    return torch.cat([padded[:, k : padded.shape[1] - width + 1 + k] for k in range(width)], dim=2)


def test_a_step_follows_an_edit_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step has no code of its own: search and training use the same formulas."""
    plain = multistep_attention.attend
    monkeypatch.setattr(
        multistep_attention, "attend", lambda d, memory: (2.0 * plain(d, memory)[0], plain(d, memory)[1])
    )
    with pytest.warns(UserWarning, match="differ by"):
        model = choose(edited := loaded())
    sample = TokenSample(edited)
    with torch.inference_mode():
        for one, found in zip(
            sample.expected[1][1], run(model.restrict(sample.entries), sample.padded), strict=True
        ):
            assert_close(found.logits, one.logits[found.rows], atol=1e-5, rtol=1e-5)
