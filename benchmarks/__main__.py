"""List the benchmarks: `python -m benchmarks`."""

import ast
from pathlib import Path

folder = Path(__file__).parent
for path in sorted([*folder.glob("[!_]*.py"), *folder.glob("*/__main__.py")]):
    text = path.read_text(encoding="utf-8")
    if '__name__ == "__main__"' in text:
        docstring = ast.get_docstring(ast.parse(text)) or ""
        summary, _, _ = docstring.partition("\n")
        name = path.parent.name if path.name == "__main__.py" else path.stem
        print(f"python -m benchmarks.{name:22} {summary}")
