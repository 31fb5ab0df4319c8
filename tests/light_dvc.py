"""DVC making the same decisions with a fraction of the work, for tests that run it dozens of times.

It skips what costs most on a small pipeline and cannot change which stages run: validating the YAML schema,
locks against other processes, the database of file hashes, and the folders of all commands before. It writes
JSON, which is valid YAML, faster.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from dvc.utils.serialize import _yaml as dvc_yaml
from dvc_data.hashfile.state import StateNoop

parse_yaml = dvc_yaml.parse_yaml


@contextlib.contextmanager
def light_dvc() -> Iterator[None]:
    """Make DVC do less in this process, which must be the only one in its repositories."""
    with (
        mock.patch("dvc.dvcfile.modify_yaml", modify_as_json),
        mock.patch("dvc.utils.strictyaml.parse_yaml", parse_json),
        mock.patch.object(dvc_yaml, "parse_yaml", parse_json),
        mock.patch("dvc.utils.strictyaml.validate"),
        mock.patch("dvc_data.hashfile.state.State", lambda *_: StateNoop()),
        mock.patch("dvc.rwlock.rwlock", lambda *_: contextlib.nullcontext()),
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


def parse_json(text: str, path: str, typ: str = "safe") -> Any:
    """Parse dvc.lock as JSON, and YAML as DVC does, once for each text (`tests.yaml_once`)."""
    return json.loads(text) if text.startswith("{") else parse_yaml(text, path, typ)
