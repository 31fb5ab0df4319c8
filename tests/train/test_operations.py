"""The operations of an update on a GPU: each costs the host time, and a wait costs all that is queued."""

from pathlib import Path

import jaxtyping
import pytest
import torch
import torch.nn.functional as F

from benchmarks.operations import Operations, count_operations
from convs2s.train.batch_update import queue_update
from convs2s.train.setup import build_training
from tests.presets import params_of
from tests.train.tiny import ALONE, batches, on_a_gpu_path, write_tiny


def test_operations_are_counted() -> None:
    """By hand: dropout, a product, a sum and a copy; its two waits; views and memory launch nothing."""
    x = torch.ones(3, 4)
    with count_operations() as operations:
        total = (F.dropout(x, 0.1).view(12)[None] @ torch.ones(12, 2)).sum()
        x.t().contiguous().masked_fill_(x.new_empty(4, 3, dtype=torch.bool), 0.0)
        total.item()
        x[x > 0]
    expected = {"native_dropout": 1, "ones": 1, "mm": 1, "sum": 1, "clone": 1, "masked_fill": 1, "gt": 1}
    assert operations.launches == expected
    assert operations.waits == {"_local_scalar_dense": 1, "index": 1}


LAUNCHES = {
    ("multi30k-en-de", "float32"): 358,
    ("multi30k-en-de", "bfloat16"): 473,
    ("wmt14-en-de-paper", "float32"): 1298,
    ("wmt14-en-de-paper", "bfloat16"): 1761,
}


def count(folder: Path, preset: str, precision: str) -> Operations:
    """Count the operations of an update of a preset's model, with few channels, from batch to result."""
    write_tiny(folder)
    params = params_of(preset)
    changes = {"precision": precision, "compile": True, "selection": None}
    paths = folder / "encoded", folder / "vocabulary", folder / "none"
    widths = {
        side: [width // 64 for width in getattr(params.model, side)]
        for side in ("encoder_widths", "decoder_widths")
    }
    model, train = params.model.model_copy(update=widths), params.train.model_copy(update=changes)
    run = on_a_gpu_path(build_training(model, train, 1, *paths, ALONE))
    losses = run.losses(0.0).train()
    loaded = run.load(batches(run)[-1])
    queue_update(run, losses, loaded, 0.1)
    with count_operations() as operations:
        queue_update(run, losses, loaded, 0.1)
    return operations


@pytest.mark.parametrize(("preset", "precision"), list(LAUNCHES))
def test_an_update_has_few_operations_and_no_wait(
    preset: str, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation more in each of 15 blocks is easily added and slows training by a few percent."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    operations = count(tmp_path, preset, precision)
    assert not operations.waits
    assert operations.launches.total() <= LAUNCHES[preset, precision], operations.launches
