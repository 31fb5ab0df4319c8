"""Presets for tests, each rendered and checked once."""

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any

from ruamel.yaml import YAML

from pipelines.preset import preset_params, render_preset

rendered = cache(render_preset)
params_of = cache(preset_params)
MISSING = "(missing)"


@cache
def parsed(name: str) -> Any:
    """Return a preset's values as nested dictionaries, which are shared: do not change them."""
    return YAML(typ="safe", pure=True).load(rendered(name))


def content_of(name: str) -> Any:
    """Return a preset's values as nested dictionaries that a test may change."""
    return copy.deepcopy(parsed(name))


def change_preset(name: str, changes: Mapping[str, object]) -> Any:
    """Return a preset's values, some of them replaced or, if MISSING, removed, by dotted name."""
    content = content_of(name)
    for dotted, value in changes.items():
        *sections, key = dotted.split(".")
        place = content
        for section in sections:
            place = place[int(section) if section.isdigit() else section]
        place[key] = value
        if value is MISSING:
            del place[key]
    return content
