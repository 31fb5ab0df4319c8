"""A training on a CPU has the engine's layers only where they compute what the plain ones do."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from convs2s.engine.train.layers import FastDropout, FastGluConvolution, fast_softmax_loss
from convs2s.ids.encoded import EncodedSentences
from convs2s.model.glu_block import GluConvolution
from convs2s.train import choose_layers
from convs2s.train.loop import train
from convs2s.train.loss import softmax_loss
from convs2s.train.training import Training
from tests.model.changed import ChangedSeq2Seq
from tests.train.tiny import sentences, tiny_training

FORWARD = GluConvolution.forward
ALL = {"convolution", "dropout", "loss"}


def fast_layers(training: Training) -> set[str]:
    """Return which of the fast layers a training has."""
    kinds = {type(module) for module in training.model.modules()}
    names = {"convolution": FastGluConvolution in kinds, "dropout": FastDropout in kinds}
    assert not {FastGluConvolution, GluConvolution} <= kinds
    assert not {FastDropout, nn.Dropout} <= kinds
    return {name for name, has in {**names, "loss": training.softmax is fast_softmax_loss}.items() if has}


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("selection", [None, {"common": 2, "candidates": 3}])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_training_as_it_is_has_all_fast_layers(
    tmp_path: Path, dropout: float, selection: dict[str, int] | None, precision: str
) -> None:
    """Without an edit, plain layers would only make training slower, and a warning would be a false alarm."""
    with warnings.catch_warnings(action="error"):
        training = tiny_training(
            tmp_path, tied_embeddings=True, dropout=dropout, selection=selection, precision=precision
        )
    assert fast_layers(training) == ALL


def tanh_gate(self: GluConvolution, x: Tensor, left: int, right: int) -> Tensor:
    return FORWARD(self, x, left, right).tanh()


def other_dropout(self: GluConvolution, x: Tensor, left: int, right: int) -> Tensor:
    """Drop whole channels rather than elements."""
    rows = x if not self.training else F.dropout1d(x.transpose(1, 2), self.dropout).transpose(1, 2)
    self.eval()
    try:
        return FORWARD(self, rows, left, right)
    finally:
        self.train()


@pytest.mark.parametrize("edit", [tanh_gate, other_dropout])
def test_an_edit_of_the_convolution_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Any
) -> None:
    """The warning names both files and how much they differ; the other fast layers stay."""
    monkeypatch.setattr(GluConvolution, "forward", edit)
    place = (
        r"fast convolution is left out.* differ by .*convs2s/engine/train/layers.py.*convs2s/model/glu_block"
    )
    with pytest.warns(UserWarning, match=place):
        training = tiny_training(tmp_path, dropout=0.3)
    assert fast_layers(training) == {"dropout", "loss"}


def test_an_edit_of_the_gradient_alone_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers with the same loss may have different gradients, and training follows the gradients."""

    def forward(self: GluConvolution, x: Tensor, left: int, right: int) -> Tensor:
        y = FORWARD(self, x, left, right)
        return y.detach() + 0.5 * (y - y.detach())

    monkeypatch.setattr(GluConvolution, "forward", forward)
    with pytest.warns(UserWarning, match="fast convolution is left out.*gradients differ by"):
        assert fast_layers(tiny_training(tmp_path)) == {"dropout", "loss"}


def last_position(self: GluConvolution, x: Tensor, left: int, right: int) -> Tensor:
    y = FORWARD(self, x, left, right)
    return torch.cat([y[:, :-1], 0.5 * y[:, -1:]], dim=1)


def from_the_eighth_on(self: GluConvolution, x: Tensor, left: int, right: int) -> Tensor:
    y = FORWARD(self, x, left, right)
    return torch.cat([y[:, :7], 0.9 * y[:, 7:]], dim=1)


def one_sentence(self: GluConvolution, x: Tensor, left: int, right: int) -> Tensor:
    y = FORWARD(self, x, left, right)
    return torch.cat([y[:1], 0.9 * y[1:2], y[2:]])


@pytest.mark.parametrize("edit", [last_position, from_the_eighth_on, one_sentence])
def test_an_edit_that_acts_somewhere_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Any
) -> None:
    """The first pairs of a corpus may all be short; those compared range from the shortest to the longest."""
    monkeypatch.setattr("tests.train.tiny.sentences", short_ones_first)
    monkeypatch.setattr(GluConvolution, "forward", edit)
    with pytest.warns(UserWarning, match="fast convolution is left out.* differ by"):
        assert fast_layers(tiny_training(tmp_path)) == {"dropout", "loss"}


def short_ones_first(count: int, start: int) -> EncodedSentences:
    """Return a corpus whose longest sentences, of nine tokens, come last."""
    made = sentences(count, start)
    order = np.argsort(made.lengths, kind="stable")
    rows = np.split(np.asarray(made.ids), np.cumsum(made.lengths)[:-1])
    return EncodedSentences(np.concatenate([rows[i] for i in order]), np.asarray(made.lengths)[order])


def test_pairs_that_are_compared_have_very_different_lengths() -> None:
    """From the shortest pair to the longest, unless it is so long that the comparison would take seconds."""
    lengths = np.array([30, 2, 3, 500, 4, 5, 6, 7, 8, 9, 40, 50])
    assert lengths[choose_layers.choose_pairs(lengths)].tolist() == [2, 3, 4, 6, 7, 9, 30, 50]
    assert choose_layers.choose_pairs(np.array([300, 200])).tolist() == [1, 0]


def test_an_edit_of_the_loss_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit such as a temperature must not be lost to the fast copy of the loss."""

    def loss(features: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
        return softmax_loss(features / 2, *arguments)

    monkeypatch.setattr(choose_layers, "softmax_loss", loss)
    with pytest.warns(UserWarning, match="fast loss is left out.*losses differ by.*convs2s/train/loss.py"):
        training = tiny_training(tmp_path)
    assert fast_layers(training) == {"convolution", "dropout"}
    assert training.softmax is loss


def test_a_layer_that_fails_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any error in a fast layer leaves the plain one, which is slower but works."""
    monkeypatch.setattr(FastGluConvolution, "forward", lambda *_: 1 / 0)
    with pytest.warns(UserWarning, match="fast convolution is left out.*it ends in ZeroDivisionError"):
        assert fast_layers(tiny_training(tmp_path)) == {"dropout", "loss"}


def test_a_variable_turns_them_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the plain layers needs no warning; a compiled training has no fast ones anyway."""
    monkeypatch.setenv("CONVS2S_ENGINE", "plain")
    with warnings.catch_warnings(action="error"):
        assert fast_layers(tiny_training(tmp_path)) == set()
        monkeypatch.delenv("CONVS2S_ENGINE")
        assert fast_layers(tiny_training(tmp_path, compile=True)) == set()


def test_a_batch_norm_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of the bias before it are rounding; the comparison leaves its running means as they were."""
    monkeypatch.setattr("convs2s.train.setup.Seq2Seq", ChangedSeq2Seq)
    with warnings.catch_warnings(action="error"):
        training = tiny_training(tmp_path)
    assert fast_layers(training) == ALL
    norm = training.model.get_submodule("batch_norm")
    assert torch.equal(norm.get_buffer("running_mean"), torch.zeros(16))
    assert norm.get_buffer("num_batches_tracked") == 0


def test_the_comparison_leaves_no_trace(tmp_path: Path) -> None:
    """Changed random numbers or leftover gradients would change the weights that are trained."""
    torch.manual_seed(5)
    training = tiny_training(tmp_path)
    before = torch.get_rng_state()
    choose_layers.choose_layers(training)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in training.model.parameters())


def test_tables_that_are_not_trained_are_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sinusoidal positions, for example, have no gradient; the other weights are compared, and trained."""
    monkeypatch.setattr(
        "convs2s.model.embedding.lookup_table",
        lambda rows, channels, _: nn.Embedding(rows, channels).requires_grad_(False),
    )
    with warnings.catch_warnings(action="error"):
        training = tiny_training(tmp_path)
    assert fast_layers(training) == ALL
    before = {name: weight.clone() for name, weight in training.model.named_parameters()}
    next(train(training))
    kept = {name for name, weight in training.model.named_parameters() if torch.equal(weight, before[name])}
    assert kept == {name for name in before if "_embedding." in name}
