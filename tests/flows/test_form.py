"""The parameters of flows, as in the run form."""

from typing import Any

import pytest
from prefect.utilities.schema_tools.validation import validate

from pipelines.flows.reproduce import reproduce
from pipelines.flows.sweep import sweep


@pytest.mark.parametrize(
    ("flow", "asked", "faults"),
    [
        (reproduce, {"overrides": ["seeds=[1,2]"], "parallel": 3, "remote": "gpu"}, 0),
        (reproduce, {"parallel": 0}, 1),
        (reproduce, {"beam": 5}, 1),
        (sweep, {}, 1),
        (sweep, {"table": "../table5"}, 2),
    ],
)
def test_the_server_checks_the_form(flow: Any, asked: dict[str, Any], faults: int) -> None:
    """Otherwise, a mistake would be noticed only in a run, which has then failed."""
    assert len(validate({"params": asked}, flow.parameters.model_dump_for_openapi())) == faults
