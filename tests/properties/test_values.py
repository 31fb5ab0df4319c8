"""Whatever the values, params.yaml and an importer's arguments are read, or refused by key."""

import copy
import json
from pathlib import Path
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from convs2s.config.load import parse_params
from convs2s.config.params import Params
from convs2s.exchange.fairseq_architecture import read_architecture
from convs2s.exchange.fairseq_files import Checkpoint
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
ARGUMENTS = {
    "encoder_layers": "[(8, 3)] * 2", "decoder_layers": "[(8, 3)]", "decoder_attention": "True",
    "encoder_embed_dim": 8, "decoder_embed_dim": 8, "decoder_out_embed_dim": 8,
}  # fmt: skip
EXPRESSIONS = st.sampled_from([
    "[(8, 3)]", "[(8, 3)] * 10000000", "[[8, 3]] + [(8, 5)]", "True", "[True, False]", "__import__('os')",
    "(" * 200,    "[(8, 3)] * -1", "9**9**9", "[(8, 3, 2)]", "[(1e9, 3)]", "", "\0",
])  # fmt: skip


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


@given(
    st.dictionaries(st.sampled_from([*ARGUMENTS, "max_source_positions"]), EXPRESSIONS | VALUES, max_size=3)
)
def test_an_importer_takes_an_architecture_or_says_why_not(changes: dict[str, Any]) -> None:
    """The arguments are expressions that fairseq evaluates as code; the importer must not."""
    rows = {f"{side}.embed_positions.weight": torch.empty(20, 8) for side in ("encoder", "decoder")}
    try:
        params = read_architecture(Checkpoint(Path("x.pt"), {**ARGUMENTS, **changes}, rows))
    except ValueError as error:
        assert str(error).startswith("x.pt")
    else:
        assert len(params.decoder_widths) == len(params.attention)
