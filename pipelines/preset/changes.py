"""What `python -m pipelines.preset` would change in params.yaml, and whether that would lose edits."""

import json
import re
import subprocess
from argparse import ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml.error import YAMLError

from convs2s.config.load import dotted, parse_yaml
from pipelines.preset.overrides import overrides_of
from pipelines.preset.render import EXPERIMENTS, render

SHOWN = 60
"""Maximum characters of a value to show."""


def differences(old: str, new: str) -> list[str]:
    """Return a line for each key of params.yaml whose value differs: dotted name, old -> new."""
    before, after = values(old), values(new)
    lines = []
    for name in [*after, *(before.keys() - after.keys())]:
        pair = [shown(side[name]) if name in side else "(none)" for side in (before, after)]
        if name not in before or name not in after or before[name] != after[name]:
            lines.append(f"{name}: {pair[0]} -> {pair[1]}")
    return lines


def values(text: str) -> dict[str, Any]:
    """Return the values of all keys by dotted name; none if the text is not a params.yaml."""
    try:
        content = parse_yaml(text, "params.yaml")
    except ValueError:
        return {}
    return dotted(content) if isinstance(content, Mapping) else {}


def shown(value: Any) -> str:
    """Return a value on one line, shortened."""
    line = json.dumps(value, ensure_ascii=False, default=str)
    return line if len(line) <= SHOWN else line[: SHOWN - 3] + "..."


def has_unsaved_edits(path: Path, experiments: Path = EXPERIMENTS) -> bool:
    """Return whether a file differs from both the last git commit and every preset as rendered."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if text == committed(path):
        return False
    found = re.match(r"# Preset ([\w-]+), written by: (.+)\. Edit it freely\.\n", text)
    try:
        return found is None or text != render(found[1], experiments, overrides_of(found[2]))
    except (ValueError, ArgumentTypeError, YAMLError):  # no longer a preset or a valid command
        return True


def committed(path: Path) -> str | None:
    """Return a file's text in the last commit; None without a repository, a commit or the file in it."""
    try:
        done = subprocess.run(
            ["git", "show", f"HEAD:./{path.name}"], cwd=path.parent, capture_output=True, check=False
        )
    except FileNotFoundError:  # no git
        return None
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None
