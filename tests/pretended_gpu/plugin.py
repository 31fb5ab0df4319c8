"""A plugin of pytest that runs tests on pretended GPUs: `pytest -p tests.pretended_gpu.plugin -m gpu`."""

import os

from tests.pretended_gpu.pretend import pretend

pretend(int(os.environ.get("PRETENDED_GPUS", "1")))
