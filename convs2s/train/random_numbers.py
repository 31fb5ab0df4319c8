"""Random numbers in training: each update first seeds the generators that it draws from (dropout, §4.2)."""

import torch


def seed_generators(seed: int) -> None:
    """Seed the CPU's generator, and those of the GPUs if this process uses them.

    torch.manual_seed would also format a traceback for each kind of unused device, which takes 0.3 ms.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
