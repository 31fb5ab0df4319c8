import pickle
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from convs2s.model.description import seal
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import load_model, load_start, save_model
from tests.model.small import PAD, sentence, small_model, small_params


def saved(folder: Path) -> torch.Tensor:
    """Save a small model whose g is not ||v||, as after training; return its outputs."""
    model = small_model(dropout=0.3)
    for parameter in model.parameters():
        parameter.data += 0.01 * torch.randn_like(parameter)
    save_model(folder, model, small_params())
    logits: torch.Tensor = model.eval()(sentence(7, 40)[None], sentence(5, 50)[None])[0]
    return logits.detach()


def test_a_saved_model_computes_the_same(tmp_path: Path) -> None:
    """Weight norm is folded in, dropout is off, nothing else changes."""
    wanted = saved(tmp_path)
    model = load_model(tmp_path)
    assert not model.training
    assert_close(model(sentence(7, 40)[None], sentence(5, 50)[None])[0], wanted)


@pytest.mark.parametrize("plain_output", [False, True])
def test_a_training_starts_from_the_saved_weights(tmp_path: Path, plain_output: bool) -> None:
    """Weight norm is restored with g = ||v||: the same function, and each parameter still gets a gradient."""
    wanted = saved(tmp_path)
    model = Seq2Seq(small_params(), 40, 50, PAD, 0.0, plain_output)
    load_start(tmp_path, model)
    logits = model.train()(sentence(7, 40)[None], sentence(5, 50)[None])[0]
    assert_close(logits, wanted)
    logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        if name.endswith("original0"):
            v = model.get_parameter(name.replace("original0", "original1"))
            assert_close(parameter.data, v.data.norm(dim=1, keepdim=True))


def test_a_training_of_another_size_cannot_start_from_it(tmp_path: Path) -> None:
    """Every differing tensor counts, as a vocabulary of another size would be wrong without an error."""
    saved(tmp_path)
    with pytest.raises(ValueError, match=r"does not fit.*\n  output_layer.bias: expected \(51,\)"):
        load_start(tmp_path, Seq2Seq(small_params(), 40, 51, PAD, 0.0))


def test_tied_tables_cannot_start_from_two(tmp_path: Path) -> None:
    """One of them would be lost."""
    params = small_params(output_embedding_size=12)
    save_model(tmp_path, Seq2Seq(params, 40, 50, PAD, 0.0), params)
    model = Seq2Seq(params, 40, 50, PAD, 0.0, plain_output=True)
    model.output_layer.weight = model.target_embedding.words.weight
    with pytest.raises(ValueError, match=r"expected target_embedding.words.weight to equal the table"):
        load_start(tmp_path, model)
    save_model(tmp_path, model, params)
    load_start(tmp_path, model)


class Trap:
    """Creates a file in the current folder when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, ("trap",)


def test_a_pickle_is_refused_and_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone else's model folder must not run code."""
    monkeypatch.chdir(tmp_path)
    saved(tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(pickle.dumps(Trap()))
    seal(tmp_path)
    with pytest.raises(ValueError, match="damaged or not a safetensors file"):
        load_model(tmp_path)
    assert not Path("trap").exists()
