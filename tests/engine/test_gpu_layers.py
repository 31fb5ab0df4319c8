"""The layers for a GPU compute what the plain ones do; they need nothing of a GPU, so tests run on a CPU."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from convs2s.engine.train.gpu_layers import GpuGluConvolution
from convs2s.ids.vocabulary import PAD
from convs2s.model import multistep_attention
from convs2s.model.glu_block import GluConvolution
from convs2s.model.seq2seq import Seq2Seq
from convs2s.train import choose_layers
from convs2s.train.batch_update import queue_update
from convs2s.train.distributed import join_workers
from convs2s.train.loop import validation_loss
from convs2s.train.training import Training
from tests.train.forks import forked
from tests.train.tiny import on_a_gpu_path, tiny_params, tiny_training, weights

MIXED = {
    "encoder_widths": [16, 24, 24], "encoder_kernels": [3, 5, 1], "decoder_widths": [16, 24, 24],
    "decoder_kernels": [3, 4, 1], "attention": [True, False, True],
}  # fmt: skip


def mixed_trainings(folder: Path, precision: str) -> tuple[Training, Training]:
    """Return two trainings of the same model with layers of all kinds; the second has those for a GPU."""
    runs = []
    for name in ("plain", "gpu"):
        (folder / name).mkdir()
        run = tiny_training(folder / name, precision=precision, compile=True)
        torch.manual_seed(2)
        params = tiny_params(folder / name).model.model_copy(update=MIXED)
        run.model = Seq2Seq(params, 30, 30, PAD, dropout=0.2)
        runs.append(run)
    return runs[0], on_a_gpu_path(runs[1])


def losses_and_gradients(run: Training, smoothing: float) -> list[Tensor]:
    """Return both losses of some pairs and every gradient, with dropout."""
    torch.manual_seed(7)
    with torch.autocast("cpu", torch.bfloat16, enabled=run.state.precision == "bfloat16"):
        total, likelihood = run.losses(smoothing).train()(*run.inputs(run.train, range(9)), None)
    return [total.detach(), likelihood, *torch.autograd.grad(total / 40, list(run.model.parameters()))]


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("bfloat16", 0.03)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_and_gradients_are_those_of_the_plain_model(
    tmp_path: Path, precision: str, tolerance: float, smoothing: float
) -> None:
    """Padded sentences, kernels of each kind, blocks without attention, and the same dropout masks."""
    plain, fast = mixed_trainings(tmp_path, precision)
    expected, found = (losses_and_gradients(run, smoothing) for run in (plain, fast))
    largest = max(float(gradient.abs().max()) for gradient in expected[2:])
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=tolerance, atol=tolerance * largest)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("width", "left", "right"), [(3, 1, 1), (3, 2, 0), (4, 3, 0), (5, 0, 0)])
def test_windows_are_those_of_the_plain_layer(dtype: torch.dtype, width: int, left: int, right: int) -> None:
    """To the last bit: copies of the input, and sums of their gradients in the same order."""
    plain = GluConvolution(7, 5, width, dropout=0.1).to(dtype)
    fast = GpuGluConvolution(7, 5, width, dropout=0.1).to(dtype)
    fast.load_state_dict(plain.state_dict())
    results = []
    for layer in (plain, fast):
        torch.manual_seed(3)
        x = torch.sin(torch.arange(4 * 6 * 7)).view(4, 6, 7).to(dtype).requires_grad_()
        y = layer(x, left, right)
        (gradient,) = torch.autograd.grad(y, x, torch.cos(torch.arange(y.numel())).view(y.shape).to(dtype))
        results.append((y, gradient))
    assert torch.equal(results[1][0], results[0][0])
    assert torch.equal(results[1][1], results[0][1])


def test_validation_is_that_of_the_plain_model(tmp_path: Path) -> None:
    """What does not train has the plain layers: its perplexity chooses the model, as on a CPU."""
    plain, fast = mixed_trainings(tmp_path, "float32")
    fast.lists_tokens = True
    assert validation_loss(fast) == validation_loss(plain)


def update_first(run: Training, losses: nn.Module) -> None:
    """Make an update from the first batch."""
    batch = next(run.batching.share(run.begin_pass(), run.workers.rank))
    queue_update(run, losses.train(), run.load(batch), 0.1)


def test_two_workers_train_as_one(tmp_path: Path) -> None:
    """Under DDP gradients are exchanged layer by layer, while backward runs in the layers below."""
    changes: dict[str, Any] = {"dropout": 0.0, "compile": True, "clip_norm": 1e9, "max_tokens": 20}
    (tmp_path / "one").mkdir()
    alone = on_a_gpu_path(tiny_training(tmp_path / "one", batch_sentences=8, **changes))
    update_first(alone, alone.losses(0.1))

    def work() -> None:
        with join_workers(2) as workers:
            folder = tmp_path / f"worker-{workers.rank}"
            folder.mkdir()
            run = on_a_gpu_path(tiny_training(folder, place=workers, batch_sentences=4, **changes))
            before = weights(run)
            update_first(run, workers.wrap(run.losses(0.1), run.state.precision))
            moved = (weights(alone) - before).abs().max()
            assert (weights(run) - weights(alone)).abs().max() <= 1e-5 * moved

    with forked(2, work) as processes:
        for process in processes:
            process.join(60)
            assert process.exitcode == 0


def test_an_edit_of_the_attention_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the comparison, an edit of the formula would train the old one on a GPU and decode the new."""
    monkeypatch.setitem(choose_layers.FAST_LAYERS, "cpu", choose_layers.FAST_LAYERS["cuda"])
    for folder in ("plain", "edited"):
        (tmp_path / folder).mkdir()
    run = tiny_training(tmp_path / "plain")
    assert {type(module).__name__ for module in run.model.modules()} >= {
        "GpuGluConvolution", "GpuAttention", "GpuDecoder"
    }  # fmt: skip
    plain = multistep_attention.attend
    monkeypatch.setattr(multistep_attention, "attend", lambda d, memory: plain(d * 2, memory))
    place = r"GPU's fast attention is left out.*gpu_layers.py.*convs2s/model/multistep_attention.py"
    with pytest.warns(UserWarning, match=place):
        run = tiny_training(tmp_path / "edited")
    names = {type(module).__name__ for module in run.model.modules()}
    assert "GpuGluConvolution" in names
    assert not names & {"GpuAttention", "GpuDecoder"}
