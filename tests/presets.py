"""Presets for tests, each rendered and checked once."""

from functools import cache
from typing import Any

from ruamel.yaml import YAML

from pipelines.preset import preset_params, render

rendered = cache(render)
params_of = cache(preset_params)


def content_of(name: str) -> Any:
    """Return a preset's values as nested dictionaries that a test may change."""
    return YAML(typ="safe", pure=True).load(rendered(name))
