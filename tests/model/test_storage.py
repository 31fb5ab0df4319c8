import pickle
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from convs2s.model.description import seal
from convs2s.model.initialization import folded_weights
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import build_unfilled, load_model, load_start, save_model
from tests.model.changed import ChangedSeq2Seq, make_odd
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
        if not parameter.requires_grad:
            continue
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
    """A tied model has one table where the file has two, so one of them would be lost."""
    params = small_params(output_embedding_size=12)
    save_model(tmp_path, Seq2Seq(params, 40, 50, PAD, 0.0), params)
    model = Seq2Seq(params, 40, 50, PAD, 0.0, plain_output=True)
    model.output_layer.weight = model.target_embedding.words.weight
    with pytest.raises(ValueError, match=r"expected target_embedding.words.weight to equal the table"):
        load_start(tmp_path, model)
    save_model(tmp_path, model, params)
    load_start(tmp_path, model)


def test_what_people_add_to_a_model_is_stored_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its own parameters, or the running means and counts of norms, it would compute something else.

    A table that it computes from a formula is not stored.
    """
    monkeypatch.setattr("convs2s.model.storage.Seq2Seq", ChangedSeq2Seq)
    params = small_params()
    model = ChangedSeq2Seq(params, 40, 50, PAD, 0.0)
    make_odd(model)
    save_model(tmp_path, model, params)
    loaded = load_model(tmp_path)
    pair = (sentence(7, 40)[None], sentence(5, 50)[None])
    assert_close(loaded(*pair)[0], model.eval()(*pair)[0])
    own = {"scale", *(f"batch_norm.{name}" for name in model.batch_norm.state_dict())}
    assert own <= loaded.state_dict().keys() == folded_weights(model).keys()
    started = ChangedSeq2Seq(params, 40, 50, PAD, 0.0)
    load_start(tmp_path, started)
    assert_close(started.eval()(*pair)[0], model(*pair)[0])
    for name, tensor in folded_weights(model).items():
        assert_close(folded_weights(started)[name], tensor)


def test_an_unfilled_model_takes_no_memory() -> None:
    """Each weight has only a shape until it is read; the plain model has nothing else."""
    model = build_unfilled(small_params(), 40, 50, PAD)
    assert all(tensor.is_meta for tensor in model.state_dict().values())


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
