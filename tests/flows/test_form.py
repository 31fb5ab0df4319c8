"""The parameters of flows, as in the run form."""

import argparse
import re
from typing import Any

import pytest
from prefect.utilities.schema_tools.validation import validate

from pipelines.flows.form import RunParams
from pipelines.flows.reproduce import reproduce
from pipelines.flows.sweep import SweepParams, sweep
from tests.flows import toy


@pytest.mark.parametrize("flow", [reproduce, sweep])
def test_every_parameter_is_a_plain_field(flow: Any) -> None:
    """The UI shows an object as raw JSON, and anyOf as a switch between fields."""
    (form,) = flow.parameters.definitions.values()
    for name, field in form["properties"].items():
        kind = field["items"]["type"] if field["type"] == "array" else field["type"]
        assert kind in {"string", "integer", "number", "boolean"} and field["description"], name


def test_the_documentation_lists_the_fields() -> None:
    """By their names, as the API takes them."""
    page = (toy.ROOT / "docs" / "prefect.md").read_text(encoding="utf-8")
    fields = SweepParams.model_fields
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(fields)


@pytest.mark.parametrize(
    ("flow", "asked", "faults"),
    [
        (reproduce, {}, 0),
        (reproduce, {"overrides": ["seeds=[1,2]"], "parallel": 3, "remote": "gpu"}, 0),
        (reproduce, {"parallel": 0}, 1),
        (reproduce, {"beam": 5}, 1),
        (sweep, {"table": "table5"}, 0),
        (sweep, {}, 1),
        (sweep, {"table": "../table5"}, 2),
    ],
)
def test_the_server_checks_the_form(flow: Any, asked: dict[str, Any], faults: int) -> None:
    """Otherwise, a mistake would be noticed only in a run, which has then failed."""
    assert len(validate({"params": asked}, flow.parameters.model_dump_for_openapi())) == faults


def test_overrides_replace_params_yaml() -> None:
    """A row's values come after them."""
    asked = RunParams(overrides=["seeds=[3,1]", "train.clip_norm=1e-1", "package.name=a b"])
    assert asked.changes() == {"seeds": [3, 1], "train.clip_norm": 0.1, "package.name": "a b"}
    _, params = asked.render(toy.ROOT, {"package.name": "row"})
    assert (params.seeds, params.train.clip_norm, params.package.name) == ([3, 1], 0.1, "row")
    with pytest.raises(argparse.ArgumentTypeError, match="expected NAME=VALUE, such as"):
        RunParams(overrides=["dropout"]).changes()
