"""Gives child processes their GPUs: Python imports this when it starts, if the folder is in PYTHONPATH."""

import os

from tests.pretended_gpu.pretend import pretend

pretend(int(os.environ["PRETENDED_GPUS"]))
