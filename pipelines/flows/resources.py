"""What stages share: the GPUs of this machine, and how many stages may use its CPU at once."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field


def visible_gpus() -> list[int]:
    """Return the ids of the GPUs that this process may use; none if there is no driver.

    CUDA_VISIBLE_DEVICES narrows them, as for any program that uses CUDA.

    Raises:
        ValueError: if nvidia-smi fails, or CUDA_VISIBLE_DEVICES names GPUs in another way.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    shown = subprocess.run(
        [program, "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    if shown.returncode != 0:
        raise ValueError(
            f"nvidia-smi fails, so GPUs cannot be leased: {shown.stdout.strip()} {shown.stderr.strip()}. "
            "Mend the driver, or hide it (PATH) to run on the CPU."
        )
    present = [int(line) for line in shown.stdout.split() if line.isdigit()]
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return present
    parts = [part.strip() for part in named.split(",") if part.strip()]
    if not all(part.isdigit() for part in parts):
        raise ValueError(f"CUDA_VISIBLE_DEVICES: found {named}, wanted numbers as nvidia-smi counts GPUs.")
    return [int(part) for part in parts if int(part) in present]


def choose_gpus(asked: Sequence[int] | None) -> list[int]:
    """Return the GPU ids to lease: those asked for, or all that are visible.

    Raises:
        ValueError: if one that was asked for is not there, or twice in the list.
    """
    present = visible_gpus()
    if not asked:  # a form sends an empty list, too
        return present
    if len(set(asked)) < len(asked):
        raise ValueError(f"gpus: found {list(asked)}, wanted each id once: two stages would share that GPU.")
    missing = sorted(set(asked) - set(present))
    if missing:
        raise ValueError(
            f"gpus: found {list(asked)}, but this machine shows {present or 'none'} "
            f"(CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'unset')}). Wanted ids of GPUs "
            "that are there; leave gpus empty to use all of them."
        )
    return list(asked)


@dataclass
class Resources:
    """What is free now; used by the scheduler's thread alone.

    Attributes:
        gpus: ids of free GPUs.
        places: how many further stages may start that take no GPU.
        has_gpus: whether there are GPUs at all; if not, stages that would take one take a place.
    """

    gpus: list[int]
    places: int
    has_gpus: bool = field(init=False)

    def __post_init__(self) -> None:
        self.has_gpus = bool(self.gpus)

    def lease(self, wanted: int) -> list[int] | None:
        """Take `wanted` GPUs, or a place of the CPU if it is 0; None if that is not free now."""
        if wanted and self.has_gpus:
            if len(self.gpus) < wanted:
                return None
            taken, self.gpus = self.gpus[:wanted], self.gpus[wanted:]
            return taken
        if self.places == 0:
            return None
        self.places -= 1
        return []

    def give_back(self, taken: Sequence[int]) -> None:
        """Return what `lease` gave."""
        if taken:
            self.gpus = sorted([*self.gpus, *taken])
        else:
            self.places += 1
