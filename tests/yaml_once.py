"""Each YAML text is parsed once per process: ruamel takes longer for a params.yaml than most tests."""

import pickle
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOM = 300
"""Maximum number of cached texts."""
parse = YAML.load
seen: dict[tuple[object, ...], bytes] = {}


def load_once(self: YAML, stream: Any) -> Any:
    """Replace `YAML.load`: each result is a new object, so it may be changed."""
    if self.typ != ["safe"]:
        return parse(self, stream)
    text = stream.read_bytes() if isinstance(stream, Path) else stream
    text = text.read() if hasattr(text, "read") else text
    key = self.pure, self.version, self.allow_duplicate_keys, text
    if key not in seen:
        content = parse(self, text)
        if len(seen) >= ROOM:
            del seen[next(iter(seen))]
        try:
            seen[key] = pickle.dumps(content)
        except RecursionError:  # nested very deeply
            return content
    return pickle.loads(seen[key])


YAML.load = load_once  # type: ignore[method-assign]
