"""When a section gains a key, an entry in one table keeps older files readable."""

import json
from pathlib import Path
from typing import Any

import pytest
from torch.testing import assert_close

from convs2s.config import older
from convs2s.config.model import ModelParams
from convs2s.config.older import ADDED, with_added_keys, without_added_keys
from convs2s.config.params import Params
from convs2s.model import description, loading, unfilled
from convs2s.model.description import Description
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import save_model
from tests.model.small import PAD, sentence, small_model, small_params


class LaterModelParams(ModelParams):
    """The architecture with an option that does not exist yet."""

    made_up: bool


class LaterDescription(Description):
    """A model.json with that architecture."""

    architecture: LaterModelParams


def later_model_loads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a model folder written today with the schema of a later version."""
    seen = []
    built = Seq2Seq

    def see(params: LaterModelParams, *args: Any, **named: Any) -> Seq2Seq:
        seen.append(params.made_up)
        return built(params, *args, **named)

    monkeypatch.setattr(description, "Description", LaterDescription)
    monkeypatch.setattr(unfilled, "Seq2Seq", see)
    loading.load_model(folder)
    assert seen == [False]


def test_a_model_folder_without_a_later_option_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table supplies the option's default; without an entry the folder would be refused."""
    save_model(tmp_path, small_model(), small_params(), 40, 50, PAD)
    with pytest.raises(ValueError, match=r"does not describe a model(.|\n)*made_up"):
        later_model_loads(tmp_path, monkeypatch)
    monkeypatch.undo()
    monkeypatch.setitem(older.ADDED, "model", {"made_up": False})
    later_model_loads(tmp_path, monkeypatch)


def test_an_older_model_folder_computes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default must restore the old behavior; here extra_scaling is the added key."""
    model = small_model()
    save_model(tmp_path, model, small_params(), 40, 50, PAD)
    inputs = sentence(7, 40)[None], sentence(5, 50)[None]
    path = tmp_path / "model.json"
    description = json.loads(path.read_text())
    del description["files"], description["sha256"]
    value = description["architecture"].pop("extra_scaling")
    path.write_text(json.dumps(description))
    for default, same in ((value, True), (not value, False)):
        monkeypatch.setitem(older.ADDED, "model", {"extra_scaling": default})
        found, wanted = loading.load_model(tmp_path)(*inputs)[0], model.eval()(*inputs)[0]
        if same:
            assert_close(found, wanted)
        assert bool((found - wanted).abs().max() < 1e-5) == same


def test_keys_of_a_file_win_over_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default must not hide a written value; what is not a mapping is left for the schema to report."""
    monkeypatch.setitem(older.ADDED, "model", {"scaling": False})
    assert with_added_keys("model", {"width": 3}) == {"scaling": False, "width": 3}
    assert with_added_keys("model", {"width": 3, "scaling": True}) == {"width": 3, "scaling": True}
    assert with_added_keys("model", [1]) == [1]
    assert with_added_keys("model", None) is None


def test_keys_with_their_default_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The section must read as it did before the key existed, with the other keys in the same order."""
    monkeypatch.setitem(older.ADDED, "model", {"scaling": False})
    assert list(without_added_keys("model", {"b": 1, "scaling": False, "a": False})) == ["b", "a"]
    assert without_added_keys("model", {"b": 1, "scaling": True}) == {"b": 1, "scaling": True}


@pytest.mark.parametrize("name", ADDED)
def test_the_table_names_options_that_exist(name: str) -> None:
    """A misspelled or removed key would make every older folder unreadable."""
    section = Params.model_fields[name].annotation
    assert section is not None
    assert ADDED[name].keys() <= section.model_fields.keys()
