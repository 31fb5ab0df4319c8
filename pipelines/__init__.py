"""The pipeline of the clone in the working directory: no other clone's code may run there."""

import sys
from importlib.util import find_spec
from pathlib import Path

# A virtual environment holds the path of the clone that it was made in. In another clone, it could run the
# code, and under Prefect the whole pipeline, of the first. Here, because every entrance imports this.
for _name in ("pipelines", "convs2s"):
    _own, _spec = Path(_name, "__init__.py"), find_spec(_name)
    _found = Path(_spec.origin) if _spec and _spec.origin else None
    if _own.is_file() and not (_found and _found.is_file() and _own.samefile(_found)):
        sys.exit(
            f"{Path.cwd()}: expected {_name} of this clone, found {_found and _found.parent}. The Python "
            f"environment {sys.prefix} belongs to another clone, or PYTHONPATH or PYTHONSAFEPATH is set. "
            "Unset them, or make an environment for this clone: rm -rf .venv; make install"
        )
