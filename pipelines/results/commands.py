"""The values of params.yaml that a record keeps, and the command that reproduces its result."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from convs2s.config.load import dotted
from convs2s.config.params import Params
from pipelines.preset import preset_command, preset_params

MACHINES = {"download.folder", "train.checkpoint_updates", "train.nodes", "train.rendezvous"}
"""Not recorded: they say where files and machines are."""


def recorded_params(params: Params) -> dict[str, Any]:
    """Return all values of params.yaml by dotted name, except those of machines."""
    return recorded(params.model_dump(mode="json"))


def recorded(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for the sections of a params.yaml, which may follow another version of the schema."""
    return {key: value for key, value in dotted(sections).items() if key not in MACHINES}


@cache
def of_preset(name: str) -> dict[str, Any]:
    """Return the values that a record of a preset would keep."""
    return recorded_params(preset_params(name))


def changes(preset: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from the current preset, which may have newer keys."""
    wanted = of_preset(preset)
    return {key: value for key, value in params.items() if key not in wanted or wanted[key] != value}


def command(preset: str, params: Mapping[str, Any], target: str) -> str:
    """Return the shell command that runs a preset with these parameters, from the repository's root.

    Args:
        target: of the Makefile: `repro`, or `sweep` with its table.
    """
    return f"{preset_command(preset, changes(preset, params))} && make {target}"
