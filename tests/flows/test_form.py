"""The parameters of flows, as in the run form."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect.utilities.schema_tools.validation import validate
from pydantic import ValidationError

from pipelines.flows.form import Form, ValueParams
from pipelines.flows.reproduce import ReproduceParams, reproduce, run_name
from pipelines.flows.sweep import SweepParams, sweep
from tests.flows import toy

PLAIN = {"string", "integer", "number", "boolean"}


@pytest.mark.parametrize("flow", [reproduce, sweep])
def test_every_parameter_is_a_plain_field(flow: Any) -> None:
    """The UI shows an object as raw JSON, and anyOf as a switch between fields."""
    definitions = flow.parameters.definitions
    (form,) = definitions.values()
    for name, field in form["properties"].items():
        kind = field["items"]["type"] if field["type"] == "array" else field["type"]
        assert kind in PLAIN and field["title"] and field["description"], name
    assert list(form["properties"])[-1] != "overrides"


def test_the_documentation_lists_the_fields() -> None:
    """With their titles, as the page shows them, and their names, as the API takes them."""
    page = (toy.ROOT / "docs" / "prefect.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([\w ]+) \| `(\w+)` \|", page, re.MULTILINE)
    fields = ReproduceParams.model_fields | SweepParams.model_fields
    assert sorted(listed) == sorted((str(field.title), name) for name, field in fields.items())


@pytest.mark.parametrize("asked", [{}, {"seeds": [1, 2], "overrides": ["train.clip_norm=1e-1"]}])
def test_a_submitted_form_passes_the_servers_validation(asked: dict[str, Any]) -> None:
    """The form fills empty fields from the schema's defaults, which must not be null."""
    schema = reproduce.parameters.model_dump_for_openapi()
    default = schema["properties"]["params"]["default"]
    assert validate({"params": default | asked}, schema) == []
    assert None not in default.values() and default["overrides"] == default["hours"] == []


@pytest.mark.parametrize(
    ("flow", "asked"),
    [
        (reproduce, {"beam_size": -1}),
        (reproduce, {"seeds": [-1]}),
        (reproduce, {"dropout": 1.0}),
        (reproduce, {"gpus": [-1]}),
        (reproduce, {"beam": 5}),
        (reproduce, {"overrides": ["train.droput=0.3"]}),
        (reproduce, {"overrides": ["dropout=0.3"]}),
        (sweep, {"grid": ["train.droput=[0.1,0.2]"]}),
    ],
)
def test_the_form_refuses_what_params_yaml_does(flow: Any, asked: dict[str, Any]) -> None:
    """Otherwise, the mistake would be noticed only in a run, which has then failed."""
    schema = flow.parameters.model_dump_for_openapi()
    fine = {
        "seeds": [1],
        "beam_size": 1,
        "dropout": 0.0,
        "overrides": ["download.train.sources.0.tsv=a", "model.attention=[]"],
    }
    assert validate({"params": fine}, schema) == []
    assert len(validate({"params": fine | asked}, schema)) == 1


def test_fields_and_overrides_are_merged() -> None:
    """The flow needs all values under their names in params.yaml."""
    others = ["train.clip_norm=1e-1", "package.name=a b"]
    asked = ValueParams(seeds=[3, 1], ensembles=["all"], beam_size=7, overrides=others)  # type: ignore[arg-type]
    values = {"seeds": [3, 1], "evaluate.ensembles": ["all"], "translate.beam_size": 7}
    values |= {"train.clip_norm": 0.1, "package.name": "a b"}
    assert asked.values() == asked.changes() == values
    assert ValueParams.model_validate(json.loads(asked.model_dump_json())) == asked
    _, params = asked.render(toy.ROOT)
    assert (params.seeds, params.translate.beam_size, params.package.name) == ([3, 1], 7, "a b")
    assert ValueParams().changes() == {}
    assert ValueParams(seeds=[1], overrides={"seeds": [2]}).values() == {"seeds": [2]}


def test_a_preset_replaces_params_yaml() -> None:
    """Values of params.yaml must not leak into it."""
    asked = ValueParams(preset="multi30k-en-de", seeds=[5])
    assert asked.changes() == {"preset": "multi30k-en-de", "seeds": [5]}
    _, params = asked.render(Path("nowhere"))
    assert (params.package.name, params.seeds) == ("multi30k-en-de", [5])
    with pytest.raises(ValueError, match="did you mean multi30k-en-de"):
        ValueParams(preset="multi30k-en-de2").render(toy.ROOT)


def test_a_run_is_named_after_what_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name must distinguish a run from the others in the UI."""
    asked = {"preset": "tatoeba-en-de", "seeds": [1, 2], "beam_size": 7}
    context = SimpleNamespace(flow_run=SimpleNamespace(parameters={"params": asked}))
    monkeypatch.setattr("pipelines.flows.reproduce.runtime", context)
    monkeypatch.setattr("pipelines.flows.workspace.revision", lambda _: "abc")
    expected = "tatoeba-en-de, seeds 1, 2, abc, preset=tatoeba-en-de, translate.beam_size=7"
    assert run_name() == expected
    asked["dropout"] = 3
    assert run_name() == "invalid parameters"  # the flow then says what is wrong


def test_rows_of_a_sweep_are_the_list_times_the_grid() -> None:
    """A row is a line of values, as a table of ablations needs; a search of hyperparameters is a grid."""
    asked = {"configurations": ["a=0.1 'b=x y'", "a=2"], "grid": ["c=[1, 2]", "d=[5]"]}
    sweep = SweepParams.model_validate(asked)
    first, last = {"a": 0.1, "b": "x y"}, {"a": 2}
    assert sweep.rows() == [row | {"c": c, "d": 5} for row in (first, last) for c in (1, 2)]
    assert SweepParams.model_validate(sweep.model_dump()) == sweep
    assert SweepParams(grid={"c": [3]}).rows() == [{"c": 3}]
    assert SweepParams(configurations=[{}, {"a": 1}]).rows() == [{}, {"a": 1}]


@pytest.mark.parametrize(
    ("form", "asked", "message"),
    [
        (ReproduceParams, {"overrides": ["a=1"], "targets": ["align"]}, "overrides or targets, not both"),
        (ReproduceParams, {"force": True, "remote": "gpu"}, "expected force only with remote none"),
        (ReproduceParams, {"hours": ["train=0"]}, r"hours\.train"),
        (ReproduceParams, {"hours": {"train": float("nan")}}, r"hours\.train"),
        (ReproduceParams, {"target": ["align"]}, "Extra inputs are not permitted"),
        (ValueParams, {"overrides": ["dropout"]}, "expected NAME=VALUE, such as train.dropout=0.3, found"),
        (SweepParams, {}, "nothing to sweep over"),
        (SweepParams, {"table": "table5", "grid": ["a=[1]"]}, "configurations and grid, not both"),
    ],
)
def test_a_faulty_form_is_rejected(form: type[Form], asked: dict[str, Any], message: str) -> None:
    """Before anything starts."""
    with pytest.raises(ValidationError, match=message):
        form.model_validate(asked)
