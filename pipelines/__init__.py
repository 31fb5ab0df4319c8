"""The pipeline of one clone, that in the working directory if there is one: no other's code may run there."""

import sys
from importlib.util import find_spec
from pathlib import Path

# A virtual environment holds the path of the clone that it was made in. In another clone, it could run the
# code, and under Prefect the whole pipeline, of the first. Here, because every entrance imports this.
# Flow runs begin in an empty folder; there, only convs2s can be of another clone than this file.
_clone = Path.cwd() if Path("pipelines/__init__.py").is_file() else Path(__file__).parents[1]
for _name in ("pipelines", "convs2s"):
    _own, _spec = _clone / _name / "__init__.py", find_spec(_name)
    _found = Path(_spec.origin) if _spec and _spec.origin else None
    if _own.is_file() and not (_found and _found.is_file() and _own.samefile(_found)):
        sys.exit(
            f"{_clone}: expected {_name} of this clone, found {_found and _found.parent}. The Python "
            f"environment {sys.prefix} belongs to another clone, or PYTHONPATH or PYTHONSAFEPATH is set. "
            "Unset them, or make an environment for this clone: rm -rf .venv; make install"
        )
