"""The device to translate on."""

import torch

from convs2s.text.counted import counted


def find_device(name: str | None) -> torch.device:
    """Return a device by name; None selects a GPU if there is one, else the CPU.

    Raises:
        ValueError: if there is no such device.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device {name!r} is unknown; wanted cpu, cuda, or cuda:NUMBER.") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device {name!r} does not exist: PyTorch sees "
            f"{counted(torch.cuda.device_count(), 'GPU')}. Wanted one that exists, or cpu."
        )
    return device
