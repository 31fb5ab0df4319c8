"""DVC with the same decisions for a fraction of its work, for tests that run it dozens of times.

Left out is what costs most on a small pipeline and cannot change what runs: checking the schema of YAML,
writing it where JSON, which is YAML, too, will do, patterns in names of parameters, locks against other
processes, a database of what has been hashed.
"""

import contextlib
import functools
import json
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from dvc.utils.serialize import _yaml as dvc_yaml
from dvc_data.hashfile.state import StateNoop

parse_yaml = dvc_yaml.parse_yaml


@contextlib.contextmanager
def light_dvc() -> Iterator[None]:
    """Let DVC do less in this process; it must be alone in its repositories."""
    with (
        mock.patch("dvc.dvcfile.modify_yaml", modify_as_json),
        mock.patch("dvc.utils.strictyaml.parse_yaml", parse_json),
        mock.patch.object(dvc_yaml, "parse_yaml", parse_json),
        mock.patch("dvc.utils.strictyaml.validate"),
        mock.patch("dvc.dependency.param.dpath.get", value_of),
        mock.patch("dvc.utils.serialize.dump_yaml", dump_as_json),
        mock.patch("dvc_data.hashfile.state.State", lambda *_: StateNoop()),
        mock.patch("dvc.rwlock.rwlock", lambda *_: contextlib.nullcontext()),
    ):
        yield


@contextlib.contextmanager
def modify_as_json(path: str, **_: object) -> Iterator[dict[str, Any]]:
    """Let DVC change dvc.lock as it does, but write JSON."""
    file = Path(path)
    content = json.loads(file.read_text()) if file.exists() else {}
    yield content
    file.write_text(json.dumps(content))


def dump_as_json(path: str, content: object) -> None:
    """Write what DVC would write as YAML."""
    Path(path).write_text(json.dumps(content))


def parse_json(text: str, path: str, typ: str = "safe") -> Any:
    """Read dvc.lock as JSON, and YAML as DVC does, which is done once for each text (`tests.yaml_once`)."""
    return json.loads(text) if text.startswith("{") else parse_yaml(text, path, typ)


def value_of(values: Any, name: str, separator: str) -> Any:
    """Return the value of a parameter, or raise KeyError."""
    return functools.reduce(operator.getitem, name.split(separator), values)
