"""The short form of the lists in section model: `4 x 256` for [256, 256, 256, 256]."""

import re
from collections.abc import Mapping
from typing import Any

RUN = re.compile(r"\s*(\d{1,3})\s*x\s*(\d{1,9})\s*")
MOST_LAYERS = 1000


def expanded(content: Any) -> Any:
    """Return the content of a params.yaml with the lists of section model expanded.

    `encoder_widths: 9 x 512, 4 x 1024` means nine blocks of 512 channels followed by four of 1,024; kernels
    are written the same way. A single kernel width, or a single value of `attention`, applies to every block.
    So one key sets the depth and width of a side. The schema rejects anything else.

    Raises:
        ValueError: if a string is not a valid short form.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("model"), Mapping):
        return content
    model = dict(content["model"])
    for side in ("encoder", "decoder"):
        for name in (f"{side}_widths", f"{side}_kernels"):
            if isinstance(model.get(name), str):
                model[name] = layers(name, model[name])
        repeat(model, f"{side}_kernels", f"{side}_widths", int)
    repeat(model, "attention", "decoder_widths", bool)
    return {**content, "model": model}


def layers(name: str, text: str) -> list[int]:
    """Return the list that a short form abbreviates."""
    runs = [RUN.fullmatch(part) for part in text.split(",")]
    values = [int(run[2]) for run in runs if run for _ in range(int(run[1]))]
    if None in runs or not 1 <= len(values) <= MOST_LAYERS:
        raise ValueError(
            f"model.{name}: found {text!r}, wanted a list with a value per block, such as [256, 256, 512], "
            "or its short form, such as 2 x 256, 1 x 512"
        )
    return values


def repeat(model: dict[str, Any], name: str, blocks: str, kind: type) -> None:
    """Repeat a single value for each block."""
    if type(model.get(name)) is kind and isinstance(model.get(blocks), list):
        model[name] = [model[name]] * len(model[blocks])
