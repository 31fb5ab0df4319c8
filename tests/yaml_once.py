"""Parse each YAML text once per process: for a params.yaml, ruamel takes longer than most tests."""

import pickle
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOM = 300
"""The number of texts to keep."""
parse = YAML.load
seen: dict[tuple[object, ...], bytes] = {}


def load_once(self: YAML, stream: Any) -> Any:
    """Replace `YAML.load`; each result is a fresh copy that the caller may change."""
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


YAML.load = load_once  # type: ignore[method-assign]
