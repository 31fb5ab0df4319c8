"""DVC making the same decisions with less work, for tests that run it dozens of times.

It leaves out what costs most on a small pipeline and cannot change which stages run. A test that runs few
commands does without it.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from dvc.utils.serialize import parse_yaml
from dvc_data.hashfile.state import StateNoop

from tests.yaml_once import parse_once


@contextlib.contextmanager
def light_dvc() -> Iterator[None]:
    """Make DVC do less in this process, which must be the only one in its repositories.

    Each patch names an internal function of DVC. If DVC renames one, the patch ends in an AttributeError. If
    DVC no longer calls it by this name, tests only take longer. If it gets another task, remove its patch.
    """
    with (
        # DVC rewrites dvc.lock after each stage; with ruamel, tests/test_dvc.py takes 1.7 times as long.
        mock.patch("dvc.dvcfile.modify_yaml", modify_as_json),
        # dvc.yaml, dvc.lock and params.yaml are read again in every command.
        parse_once(),
        # The schema of dvc.yaml is checked by the tests that run DVC as it is.
        mock.patch("dvc.utils.strictyaml.validate"),
        # The database of file hashes is to save hashing of large files; here all are small.
        mock.patch("dvc_data.hashfile.state.State", lambda *_: StateNoop()),
        # No other process works in the repository.
        mock.patch("dvc.rwlock.rwlock", lambda *_: contextlib.nullcontext()),
        # fsspec keeps the folders of all commands before in one dictionary, which DVC walks through.
        mock.patch("fsspec.implementations.memory.MemoryFileSystem.store", {}),
    ):
        yield


@contextlib.contextmanager
def modify_as_json(path: str, **_: object) -> Iterator[dict[str, Any]]:
    """Let DVC update dvc.lock as usual, but write JSON."""
    file = Path(path)
    content = parse_json(file.read_text(), path) if file.exists() else {}
    yield content
    file.write_text(json.dumps(content))


def parse_json(text: str, path: str) -> Any:
    """Parse dvc.lock as JSON, and any other text as DVC parses YAML."""
    return json.loads(text) if text.startswith("{") else parse_yaml(text, path)
