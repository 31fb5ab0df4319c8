"""List the benchmarks: `python -m benchmarks`."""

import ast
from pathlib import Path

FOLDER = Path(__file__).parent


def list_benchmarks() -> dict[str, str]:
    """Return the modules that are programs, with what each measures, without importing any."""
    summaries = {}
    for path in sorted([*FOLDER.glob("[!_]*.py"), *FOLDER.glob("*/__main__.py")]):
        text = path.read_text(encoding="utf-8")
        if '__name__ == "__main__"' in text:
            summary, _, _ = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
            summaries[path.parent.name if path.name == "__main__.py" else path.stem] = summary
    return summaries


if __name__ == "__main__":
    for name, summary in list_benchmarks().items():
        print(f"python -m benchmarks.{name:22} {summary}")
