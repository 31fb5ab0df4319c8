"""List the benchmarks: `python -m benchmarks`."""

import ast
from pathlib import Path

FOLDER = Path(__file__).parent


def benchmarks() -> dict[str, str]:
    """Return the modules of this folder that are commands, each with the first line of its docstring."""
    found = {}
    for path in sorted(FOLDER.glob("[!_]*.py")):
        text = path.read_text(encoding="utf-8")
        if '__name__ == "__main__"' in text:
            described = ast.get_docstring(ast.parse(text)) or ""
            found[path.stem] = described.partition("\n")[0]
    return found


if __name__ == "__main__":
    for name, line in benchmarks().items():
        print(f"python -m benchmarks.{name:22} {line}")
