"""Whatever the values, params.yaml is read, or refused by key."""

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from convs2s.config.load import parse_params
from convs2s.config.params import Params
from tests.presets import content_of

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
    | st.sampled_from([0, -1, 1, 10**30, 1e308, "tuned", "1; touch F #", "bpe", "none", "../.."])
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
PATHS = [
    (section, key)
    for section, field in Params.model_fields.items()
    for key in getattr(field.annotation, "model_fields", [""])
]


@given(st.lists(st.tuples(st.sampled_from(PATHS), VALUES), min_size=1, max_size=3))
def test_params_are_valid_or_every_fault_is_named(changes: list[tuple[tuple[str, str], Any]]) -> None:
    """Accepted values must not change when written and read again."""
    content = copy.deepcopy(content_of("tatoeba-en-de"))
    for (section, key), value in changes:
        if key:
            content[section][key] = value
        else:
            content[section] = value
    try:
        params = parse_params(json.dumps(content), "params.yaml")
    except ValueError as error:
        message = str(error)
        assert message.startswith("params.yaml ")
        assert "is invalid:\n  " in message or "not valid YAML" in message
        return
    assert parse_params(json.dumps(params.model_dump(mode="json")), "again") == params
