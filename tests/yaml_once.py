"""Parsing each YAML text once per process, for tests that read the same files many times.

For a whole params.yaml, ruamel takes up to 40 ms, longer than most tests; DVC reads dvc.yaml, dvc.lock and
params.yaml again in every command.
"""

import contextlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from ruamel.yaml import YAML

ROOM = 300
"""The number of texts to keep."""
parse = YAML.load
seen: dict[tuple[object, ...], bytes] = {}


@contextlib.contextmanager
def parse_once() -> Iterator[None]:
    """Replace `YAML.load`, which DVC and convs2s call, by one that parses a text once for all.

    A text is known by itself and by the settings of its parser that we or DVC use. If ruamel gains one that
    changes what `load` returns, name it in `load_once`, or a test may get what another parser has read.
    """
    with mock.patch.object(YAML, "load", load_once):
        yield


@pytest.fixture(scope="module")
def yaml_once() -> Iterator[None]:
    """Parse each text once in all tests of a file, which asks for this with `usefixtures`."""
    with parse_once():
        yield


def load_once(self: YAML, stream: Any) -> Any:
    """Return what `YAML.load` returns; each result is a fresh copy that the caller may change."""
    text = stream.read_bytes() if isinstance(stream, Path) else stream
    text = text.read() if hasattr(text, "read") else text
    key = *self.typ, self.pure, self.version, self.allow_duplicate_keys, self.preserve_quotes, text
    if key not in seen:
        content = parse(self, text)
        if len(seen) >= ROOM:
            del seen[next(iter(seen))]
        try:
            seen[key] = pickle.dumps(content)
        except RecursionError:  # nested too deeply to pickle
            return content
    return pickle.loads(seen[key])
