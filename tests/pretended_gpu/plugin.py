"""A plugin of pytest that gives tests, and processes that they start, pretended GPUs; see CONTRIBUTING.md."""

import os
from pathlib import Path

from tests.pretended_gpu.pretend import pretend

GPUS = os.environ.setdefault("PRETENDED_GPUS", "2")
FOLDER = Path(__file__).parent
pretend(int(GPUS))
PATHS = FOLDER / "startup", FOLDER.parent.parent, os.environ.get("PYTHONPATH", "")
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, filter(None, PATHS)))
