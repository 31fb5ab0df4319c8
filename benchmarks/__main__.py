"""List the benchmarks: `python -m benchmarks`."""

import ast
from pathlib import Path

for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
    text = path.read_text(encoding="utf-8")
    if '__name__ == "__main__"' in text:
        docstring = ast.get_docstring(ast.parse(text)) or ""
        summary, _, _ = docstring.partition("\n")
        print(f"python -m benchmarks.{path.stem:22} {summary}")
