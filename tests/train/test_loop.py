import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from convs2s.ids.batching import Batch
from convs2s.ids.vocabulary import EOS
from convs2s.train import loop
from convs2s.train.batch_update import finish_update, queue_update
from convs2s.train.loop import UpdateReport, train, validation_loss
from convs2s.train.running.run import metrics
from convs2s.train.training import Training, UpdateResult
from tests.train.tiny import VOCABULARY, batches, tiny_training, weights


def noting(calls: list[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return this function, which also adds its name to the calls."""

    def call(*arguments: Any) -> Any:
        calls.append(function.__name__)
        return function(*arguments)

    return call


def update(run: Training, batch: Batch) -> UpdateResult:
    """Make an update with a learning rate of 1."""
    loaded = run.load(batch)
    return finish_update(run, queue_update(run, run.losses(0.0), loaded, 1.0), loaded, 1.0)


@pytest.mark.parametrize(
    ("precision", "selection"),
    [("float32", None), ("bfloat16", None), ("float32", {"common": 2, "candidates": 5})],
)
def test_training_learns(tmp_path: Path, precision: str, selection: dict[str, int] | None) -> None:
    """It learns to copy sentences in any precision (T38), over all entries or those selected (§5.4)."""
    run = tiny_training(tmp_path, max_tokens=1000, dropout=0.0, precision=precision, selection=selection)
    before = math.exp(validation_loss(run))
    updates = [r for r in train(run) if isinstance(r, UpdateReport)]
    assert run.state.perplexities[-1] < before / 1.5
    assert all(p.dtype == torch.float32 for p in run.model.parameters())
    selected = [r.selected or 0 for r in updates if r.epoch == 1]
    if selection is None:
        assert "selected_entries" not in metrics(run)
    else:
        assert all(5 <= count <= VOCABULARY for count in selected)
        mean = sum(selected) / len(selected)
        assert run.state.epochs[0]["selected_entries"] == pytest.approx(mean)
        assert 5 < metrics(run)["selected_entries"] < VOCABULARY


def test_a_batch_s_gradient_is_the_sum_over_its_tokens_divided_by_their_number(tmp_path: Path) -> None:
    """It does not depend on how the batch is split into parts (§4.2, T13, T14)."""
    run = tiny_training(tmp_path, dropout=0.0, clip_norm=1e9, momentum=1e-9, batch_sentences=8, max_tokens=20)
    batch = batches(run)[0]
    assert len(batch.parts) > 2
    before = {name: p.detach().clone() for name, p in run.model.named_parameters()}
    source, target = map(torch.from_numpy, run.train.arrays([int(i) for part in batch.parts for i in part]))
    start = torch.full((len(target), 1), EOS)
    logits, _ = run.model.eval()(source, torch.cat([start, target[:, :-1]], dim=1))
    F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0, reduction="mean").backward()
    wanted = {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in run.model.named_parameters()
    }
    run.optimizer.clear_gradients()
    run.model.train()
    update(run, batch)
    for name, parameter in run.model.named_parameters():
        assert_close(before[name] - parameter.detach(), wanted[name], atol=1e-5, rtol=1e-4)


def test_a_gradient_that_is_not_finite_ends_the_training(tmp_path: Path) -> None:
    """Days of updates that change nothing would follow; the weights stay those of the last checkpoint."""
    run = tiny_training(tmp_path)
    bias = run.model.output_layer.bias
    before = weights(run)
    with torch.no_grad():
        bias[0] = math.nan
    with pytest.raises(FloatingPointError, match=r"Training diverged: in update 1 .* gradient norm is nan"):
        update(run, batches(run)[0])
    with torch.no_grad():
        bias[0] = 0.0
    assert torch.equal(weights(run), before)


def test_random_numbers_differ_by_seed_update_and_share(tmp_path: Path) -> None:
    """For the same batch and weights, each gives a different loss; the same numbers repeat it."""
    run = tiny_training(tmp_path, pairs=8, dropout=0.3, max_tokens=1000)
    (batch,) = batches(run)
    losses = run.losses(0.0).train()

    def loss(seed: int, updates: int, share: int) -> float:
        run.seed = seed
        run.state.updates = updates
        loaded = run.load(dataclasses.replace(batch, shares=[share]))
        return float(queue_update(run, losses, loaded, learning_rate=0.0)[0])

    places = [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)]
    found = [loss(*place) for place in places]
    assert len(set(found)) == 4
    assert [loss(*place) for place in places] == found


def test_reports_count_what_was_done(tmp_path: Path) -> None:
    """The updates, tokens and sentences of an epoch add up to the corpus."""
    run = tiny_training(tmp_path, pairs=45, max_epochs=1)
    reports = list(train(run))
    updates = [r for r in reports if isinstance(r, UpdateReport)]
    assert len(updates) == updates[0].batches == run.state.updates == math.ceil(45 / 8)
    assert sum(u.target_tokens for u in updates) == int(run.train.target.lengths.sum())


def test_labels_are_smoothed_in_training(tmp_path: Path) -> None:
    """What an update minimizes has the smoothing of params.yaml (T36)."""
    run = tiny_training(tmp_path, pairs=8, max_epochs=1, dropout=0.0, max_tokens=1000, label_smoothing=0.4)
    (batch,) = batches(run)
    with torch.no_grad():
        loss, likelihood = run.losses(0.4)(*run.load(batch).parts[0], None)
    update = next(report for report in train(run) if isinstance(report, UpdateReport))
    assert update.loss == pytest.approx(float(loss) / batch.target_tokens)
    assert float(loss) != pytest.approx(float(likelihood), rel=1e-3)


def test_labels_are_whole_in_validation(tmp_path: Path) -> None:
    """Perplexity stays that of the paper, whatever training minimizes (T36)."""
    smoothed = tiny_training(tmp_path, pairs=8, label_smoothing=0.4)
    plain = tiny_training(tmp_path, pairs=8, label_smoothing=0.0)
    assert validation_loss(smoothed) == validation_loss(plain)


def test_the_next_batch_is_loaded_before_the_result_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile a GPU computes. Each batch is loaded once, but for those dropped at a validation.

    A pass is ordered once: this takes seconds with millions of pairs.
    """
    run = tiny_training(tmp_path, pairs=40, validate_updates=3, max_epochs=2)
    calls = list[str]()
    for owner, name in (
        (Training, "begin_pass"), (Training, "load"), (loop, "queue_update"), (loop, "finish_update")
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, noting(calls, getattr(owner, name)))
    list(train(run))
    once = ["load"]
    step = ["queue_update", "load", "finish_update"]
    last = ["queue_update", "finish_update"]  # of a pass
    assert calls == ["begin_pass", *once, *step * 3, *once, *step, *last, "begin_pass", *once, *step]


def test_an_uncounted_batch_changes_no_weight(tmp_path: Path) -> None:
    """A worker that only stays in step with the others adds nothing to the sum."""
    run = tiny_training(tmp_path, momentum=1e-9)
    before = weights(run)
    part = torch.arange(2).numpy()
    batch = Batch(whole=part, parts=[part], shares=[0], target_tokens=10, counted=False)
    result = update(run, batch)
    assert (result.loss, result.gradient_norm) == (0.0, 0.0)
    assert torch.equal(weights(run), before)


def test_entries_left_out_get_no_gradient_and_no_probability(tmp_path: Path) -> None:
    """The loss is cross-entropy over the selected entries alone."""
    run = tiny_training(tmp_path, dropout=0.0, selection={"common": 0, "candidates": 1})
    source, target, real = run.inputs(run.train, range(3))
    entries = run.entries(run.train, Batch(torch.arange(3).numpy(), [], [], 0))
    assert entries is not None
    assert 3 < len(entries) < VOCABULARY
    logits, _ = run.model(source, torch.cat([target.new_full((3, 1), EOS), target[:, :-1]], dim=1))
    out = torch.ones(VOCABULARY, dtype=torch.bool).index_fill(0, entries, value=False)
    plain = logits.masked_fill(out, -math.inf).flatten(0, 1)
    wanted = F.cross_entropy(plain, target.flatten(), ignore_index=0, reduction="sum")
    total, likelihood = run.losses(smoothing=0.0)(source, target, real, entries)
    assert_close(total, wanted)
    assert_close(likelihood, wanted)
    total.backward()
    gradient = run.model.output_layer.weight.grad
    assert gradient is not None
    assert float(gradient[out].abs().max()) == 0.0
    assert float(gradient[entries].abs().min(dim=0).values.max()) > 0.0


def test_how_a_batch_is_split_changes_no_loss_with_selection(tmp_path: Path) -> None:
    """Memory limits must not decide which entries compete (T13, T14)."""
    selection = {"common": 2, "candidates": 5}
    runs = [
        tiny_training(tmp_path / str(size), max_tokens=size, dropout=0.0, selection=selection)
        for size in (40, 1000)
    ]
    small, large = map(batches, runs)
    assert len(small[0].parts) > len(large[0].parts) == 1
    assert validation_loss(runs[0]) == pytest.approx(validation_loss(runs[1]), rel=1e-6)
    losses = [next(iter(train(run))) for run in runs]
    assert losses[0].loss == pytest.approx(losses[1].loss, rel=1e-6)  # type: ignore[union-attr]


def test_a_compiled_training_first_chooses_a_private_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default torch.compile runs what it finds in a folder of /tmp that any user may have made."""
    calls = list[str]()
    monkeypatch.setattr(loop, "protect_torch_compile", lambda: calls.append("protect"))
    monkeypatch.setattr(torch.nn.Module, "compile", lambda *_, **__: calls.append("compile"))
    next(loop.train(tiny_training(tmp_path, compile=True)))
    assert calls == ["protect", "compile"]
