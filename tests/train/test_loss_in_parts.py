"""The loss in parts is the plain one, its gradients are, and it takes less memory."""

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from benchmarks.memory import LiveBytes
from convs2s.train import choose_layers, loss_in_parts
from convs2s.train.loop import train
from convs2s.train.loss import IGNORED, softmax_loss
from convs2s.train.loss_in_parts import MOST_PARTS, LossInParts
from convs2s.train.training import Training
from tests.train.tiny import tiny_training


def inputs_of(tokens: int, entries: int, width: int = 6) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features, weight and bias, which need gradients, and targets; every fifth is ignored."""
    generator = torch.Generator().manual_seed(tokens)
    features, weight, bias = (
        torch.randn(*shape, generator=generator).requires_grad_()
        for shape in ((tokens, width), (entries, width), (entries,))
    )
    target = torch.arange(tokens) * 7 % entries
    target[::5] = IGNORED
    return features, weight, bias, target


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("is_bfloat16", [False, True])
@pytest.mark.parametrize("tokens", [1, 3, 8, 50, 63])
def test_loss_and_gradients_are_the_plain_ones(tokens: int, is_bfloat16: bool, smoothing: float) -> None:
    """In any number of parts, of the same size or not, one of which may have no target at all."""
    inputs = inputs_of(tokens, 11)
    results = []
    for loss in (softmax_loss, LossInParts(part_bytes=1)):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_bfloat16):
            total, likelihood = loss(*inputs, smoothing)
        assert not likelihood.requires_grad
        results.append([total, likelihood, *torch.autograd.grad(0.37 * total, inputs[:3])])
    for found, expected in zip(results[1], results[0], strict=True):
        assert found.dtype == expected.dtype
        tolerance = 0.02 * float(expected.detach().abs().max()) if is_bfloat16 else 1e-6
        assert_close(found, expected, rtol=1e-5, atol=tolerance)


def count_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the tokens of each call of the plain loss are added."""
    calls = list[int]()

    def counted(features: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
        calls.append(len(features))
        return softmax_loss(features, *arguments)

    monkeypatch.setattr(loss_in_parts, "softmax_loss", counted)
    return calls


@pytest.mark.parametrize(
    ("tokens", "parts"), [(1_474, 1), (4_000, 1), (6_710, 1), (8_000, 2), (16_000, 4), (64_000, MOST_PARTS)]
)
def test_small_updates_are_computed_at_once(monkeypatch: pytest.MonkeyPatch, tokens: int, parts: int) -> None:
    """The paper's of 48 sentences are, with 40,000 entries; there, more operations would only take time.

    The tensors have shapes but no numbers.
    """
    calls = count_calls(monkeypatch)
    features, weight, bias, target = (x.to("meta") for x in inputs_of(tokens, 40_000))
    LossInParts()(features, weight, bias, target, 0.1)
    assert len(calls) == parts
    assert sum(calls) == tokens
    assert max(calls) - min(calls) < parts


def test_an_update_is_computed_at_once_unless_parts_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU has measured them; what they would be is known when memory has run out."""
    calls = count_calls(monkeypatch)
    loss = LossInParts(part_bytes=1, is_used=False)
    loss(*inputs_of(20, 11), 0.1)
    assert (calls, loss.most_parts) == ([20], MOST_PARTS)
    loss.is_used = True
    loss(*inputs_of(20, 11), 0.1)
    assert sum(calls[1:]) == 20 > max(calls[1:])


def test_memory_is_that_of_a_part() -> None:
    """At once, scores, their logarithms, and the gradients of both are in memory."""
    inputs = inputs_of(512, 4_000)
    scores = 4 * 512 * 4_000
    most = []
    for loss in (softmax_loss, LossInParts(part_bytes=scores // MOST_PARTS)):
        with LiveBytes() as memory:
            total, _ = loss(*inputs, 0.1)
            total.backward()
        most.append(memory.most / scores)
        for x in inputs[:3]:
            x.grad = None
    assert most[0] > 1.9
    assert most[1] < most[0] / 4


def test_validation_computes_no_gradients() -> None:
    """It needs none, and they take more time than the loss."""
    inputs = inputs_of(64, 11)
    with mock.patch.object(torch.autograd, "grad") as grad, torch.no_grad():
        total, likelihood = LossInParts(part_bytes=1)(*inputs, 0.0)
    grad.assert_not_called()
    assert_close(total, softmax_loss(*inputs, 0.0)[0].detach())
    assert_close(likelihood, total)


def plain_training(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Training:
    """Return a training without the layers of a CPU, as a GPU has it before the loss is chosen."""
    monkeypatch.setenv("CONVS2S_ENGINE", "plain")
    training = tiny_training(folder, **changes)
    monkeypatch.setenv("CONVS2S_ENGINE", "auto")
    return training


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("selection", [None, {"common": 2, "candidates": 3}])
def test_a_training_is_the_same(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    selection: dict[str, int] | None,
) -> None:
    """With dropout, smoothing, tied embeddings, updates in several batches, and selected tokens."""
    perplexities = []
    for is_in_parts in (False, True):
        training = plain_training(
            tmp_path,
            monkeypatch,
            precision=precision,
            selection=selection,
            tied_embeddings=True,
            max_epochs=1,
        )
        if is_in_parts:
            calls = count_calls(monkeypatch)
            training.softmax = LossInParts(part_bytes=1)
        for _ in train(training):
            pass
        perplexities += training.state.perplexities
    assert min(calls) < 12
    assert len(perplexities) == 2
    assert perplexities[1] == pytest.approx(perplexities[0], rel=1e-5 if precision == "float32" else 5e-3)


def test_parts_are_used_if_they_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison cuts its few pairs into parts; the training only large updates. It leaves no trace."""
    training = plain_training(tmp_path, monkeypatch)
    training.softmax = softmax = LossInParts(is_used=False)
    calls = count_calls(monkeypatch)
    before = torch.get_rng_state()
    with pytest.warns(UserWarning, match="cpu does not hold all scores .* in up to 8 parts"):
        choose_layers.use_parts(training, softmax)
    assert len(calls) == MOST_PARTS
    assert training.softmax is softmax
    assert softmax.is_used
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in training.model.parameters())


def test_a_loss_that_is_no_sum_is_computed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one with weights that depend on the whole update: parts would train another."""

    def loss(*arguments: Any) -> tuple[Tensor, Tensor]:
        total, likelihood = softmax_loss(*arguments)
        return total + arguments[0].square().mean(), likelihood

    training = plain_training(tmp_path, monkeypatch)
    softmax = LossInParts(is_used=False)
    monkeypatch.setattr(choose_layers, "softmax_loss", loss)
    monkeypatch.setattr(loss_in_parts, "softmax_loss", loss)
    with pytest.warns(UserWarning, match="In parts, the loss .* would be another: .* differ by"):
        choose_layers.use_parts(training, softmax)
    assert training.softmax is loss
    assert not softmax.is_used
