"""The report of a GPU: all of it runs on a CPU, and what it compares is the same computation."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from benchmarks.gpu_report import __main__ as gpu_report
from benchmarks.gpu_report.direct_convolution import DirectConvolution
from benchmarks.gpu_report.graphed_update import GraphedUpdate, cut_into_few_shapes
from benchmarks.gpu_report.mixed_lengths import draw_lengths
from benchmarks.gpu_report.training import build_random
from convs2s.ids.vocabulary import PAD
from convs2s.model.glu_block import GluConvolution
from convs2s.train.batch_update import queue_update
from tests.docs.pages import ROOT

CPU = torch.device("cpu")


@pytest.mark.slow
def test_all_parts_run(tmp_path: Path) -> None:
    """Time on a GPU is rare: what the report measures must have run before, to its end."""
    command = ["make", "gpu-report", f"PYTHON={sys.executable}", "TOY=1", f"OUT={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    titles = [part.title for part in gpu_report.parts([])]
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == titles
    assert text.count("exit status 0, ") == len(titles)
    assert text in done.stdout
    results = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert list(results) == titles[:-1]
    for part in results.values():
        assert {"cpu", "python", "torch"} <= part["machine"].keys()
        assert part["results"]
    searches = results["Search"]["results"]
    assert {row["search"] for row in searches} == {"host", "device"}
    assert all(row["same"] == "40 of 40" for row in searches if row["precision"] == "float32")
    differences = [row["difference"] for row in results["Updates"]["results"] if "difference" in row]
    assert len(differences) == 3
    assert max(differences) < 1e-5


def test_a_part_that_fails_or_is_late_leaves_the_others(tmp_path: Path) -> None:
    """Each part is a process, so even one that breaks the driver's state or never ends costs only itself."""
    parts = [
        gpu_report.Part("One that fails", ("no_such_module",), 60),
        gpu_report.Part("One that is late", ("http.server", "0"), 60, toy=("http.server", "0")),
        gpu_report.Part("One that works", ("json.tool", "--help"), 60, toy=("json.tool", "--help")),
    ]
    gpu_report.write_report(tmp_path, [parts[0], parts[2]], is_toy=True)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "No module named no_such_module" in text
    assert "exit status 1, " in text
    assert "exit status 0, " in text
    assert list(gpu_report.run(["http.server", "0"], 0.3))[-1].startswith("\nended, as its time was up, ")


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of nothing but errors would take minutes."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"expected a GPU, but PyTorch .* run make gpu-report TOY=1"):
        gpu_report.main([])


@pytest.mark.parametrize(("width", "left", "right"), [(1, 0, 0), (3, 1, 1), (4, 3, 0)])
def test_a_convolution_without_windows_is_the_same(width: int, left: int, right: int) -> None:
    """Result and gradients agree to rounding, with the weights of the plain layer under the same names."""
    plain, direct = GluConvolution(7, 5, width, dropout=0.1), DirectConvolution(7, 5, width, dropout=0.1)
    direct.load_state_dict(plain.state_dict())
    results = []
    for layer in (plain, direct):
        torch.manual_seed(3)
        x = torch.sin(torch.arange(4 * 6 * 7)).view(4, 6, 7).requires_grad_()
        y = layer(x, left, right)
        gradient = torch.cos(torch.arange(y.numel())).view(y.shape)
        results.append([y, *torch.autograd.grad(y, [x, *layer.parameters()], gradient)])
    assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)


def test_an_update_as_a_graph_is_the_same_without_one() -> None:
    """On a CPU nothing is recorded; rate and number of tokens are tensors, so that a graph can read them."""
    results = []
    for is_graphed in (False, True):
        with build_random("tatoeba-en-de", 200, CPU, toy=True, dropout=0.0) as training:
            losses = training.losses(0.0).train()
            batch = next(training.batching.share(training.begin_pass(), 0))
            loaded = training.load(batch)
            for _ in range(3):
                if is_graphed:
                    source, target, _ = loaded.parts[0]
                    graphed = GraphedUpdate(training, losses)
                    result = graphed.queue(source, target, batch.target_tokens, 0.1)
                else:
                    result = queue_update(training, losses, loaded, 0.1)
            results.append(result[[0, -1]].double())
    assert_close(results[1], results[0], rtol=1e-6, atol=0.0)


def test_few_shapes_have_all_sentences_once() -> None:
    """Padded to the lengths of their shape, which stay within the limit of tokens."""
    source, target = draw_lengths(20_000)
    batches = list(cut_into_few_shapes(source, target, 1000))
    assert sorted(np.concatenate([batch.sentences for batch in batches])) == list(range(20_000))
    for batch in batches:
        assert len(batch.sentences) <= batch.size
        assert batch.size == 1 or batch.size * max(batch.source, batch.target) <= 1000
        assert source[batch.sentences].max() <= batch.source
        assert target[batch.sentences].max() <= batch.target
    assert len({(batch.size, batch.source, batch.target) for batch in batches}) < len(batches) / 2


def test_a_batch_that_is_not_full_has_empty_sentences() -> None:
    """Their source is EOS alone: with no token at all, the attention would have nothing to attend to."""
    source, target = (np.minimum(side[:50], 30) for side in draw_lengths(50))
    batch = next(b for b in cut_into_few_shapes(source, target, 100) if len(b.sentences) < b.size)
    empty = batch.size - len(batch.sentences)
    with build_random("tatoeba-en-de", 100, CPU, toy=True, lengths=[source, target]) as training:
        source_ids, target_ids = batch.arrays(training.train)
        assert source_ids.shape == (batch.size, batch.source)
        assert (source_ids != PAD).sum() == source[batch.sentences].sum() + empty
        assert (target_ids != PAD).sum() == target[batch.sentences].sum()
        losses = training.losses(0.0).train()
        ids = torch.from_numpy(source_ids), torch.from_numpy(target_ids)
        result = GraphedUpdate(training, losses).queue(*ids, int(target[batch.sentences].sum()), 0.1)
        assert result.isfinite().all()
