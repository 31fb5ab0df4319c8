"""JSON files, read with clear errors and written whole or not at all."""

import json
from pathlib import Path
from typing import Any

from convs2s.text.corpus.files import write_lines


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that holds a JSON object.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not JSON, or not an object.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Expected a JSON file: run the stage that writes it.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not JSON: {error}. Was it edited or truncated? Make or fetch it again."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: expected a JSON object, found {type(content).__name__}. Make or fetch it again."
        )
    return content


def write_json(path: Path, content: object) -> None:
    """Write readable JSON, atomically."""
    write_lines(path, [json.dumps(content, indent=2, ensure_ascii=False)])
