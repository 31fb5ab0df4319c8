"""Ends a command, with what to do, in a Python without this project's packages: importing this is enough.

Commands that people type import it first, because anything else would end in a traceback there.
"""

import importlib.util
import sys

NEEDED = ("pydantic", "ruamel", "tqdm", "dvc")
"""Packages without which no command of the pipeline starts, by the name to import."""

missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
if missing:
    sys.exit(
        f"{sys.executable} lacks packages of this project ({', '.join(missing)}). Activate its environment: "
        "source .venv/bin/activate (make install makes it)"
    )
