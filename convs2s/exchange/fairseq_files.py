"""fairseq's files: a checkpoint -> arguments and tensors, executing nothing; a dictionary -> its entries."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.base.files import read_lines


class Meter:
    """Placeholder for fairseq's running averages, which some checkpoints contain; never used."""


# Classes that a checkpoint may contain besides tensors, numbers, text and containers of these. The loader
# creates such objects and sets their attributes, but calls none of their methods.
KNOWN: list[Any] = [
    argparse.Namespace,
    (Meter, "fairseq.meters.AverageMeter"),
    (Meter, "fairseq.meters.TimeMeter"),
    (Meter, "fairseq.meters.StopwatchMeter"),
]

START = "<s>"  # fairseq's first entry, in no line; goes last, as in the weights
OVERWRITE = " #fairseq:overwrite"  # flags an entry spelled like an earlier one or a special symbol


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's description of its model.

    Attributes:
        path: the file.
        arguments: of the model and its task, by name without dashes, such as encoder_layers.
        tensors: by fairseq's names.
    """

    path: Path
    arguments: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint of either format: arguments under `args`, or within the config under `cfg`."""
    content = load(path)
    content = content if isinstance(content, dict) else {}
    config = content.get("cfg") or {"model": content.get("args")}
    arguments = dict[str, Any]()
    for part in ("task", "model"):  # the model's override the task's
        values = config.get(part)
        arguments |= vars(values) if isinstance(values, argparse.Namespace) else values or {}
    tensors = content.get("model")
    if not (config.get("model") and isinstance(tensors, dict)):
        raise ValueError(
            f"{path} lacks tensors under the key `model`, or arguments under `args` or `cfg`; expected a "
            "checkpoint saved by fairseq, such as checkpoint_best.pt. A file with only tensors does not tell "
            "what model they belong to."
        )
    return Checkpoint(path, arguments, tensors)


def load(path: Path) -> Any:
    """Read a PyTorch file that contains only tensors, plain values and the known classes."""
    with path.open("rb") as stream, torch.serialization.safe_globals(KNOWN):
        try:
            return torch.load(stream, map_location="cpu", weights_only=True)
        except Exception as error:  # on a damaged file, PyTorch may raise anything
            # PyTorch's text has the advice to load the file without protection.
            cause = re.search(r"GLOBAL \S+|Unsupported operand \d+|$", str(error))
            fault = (cause and cause[0]) or f"{type(error).__name__}: {error}"
            raise ValueError(
                f"{path} cannot be loaded safely; nothing in it was executed. Expected a whole file of "
                "torch.save with only tensors, plain values and argparse.Namespace; found: "
                f"{fault}. Fetch it again if it is incomplete. If it is whole and you trust it, load it with "
                "the program that wrote it, and save "
                "{'args': argparse.Namespace(**arguments), 'model': state['model']}."
            ) from error


def read_fairseq_dictionary(path: Path) -> list[tuple[str, int]]:
    """Return the entries of a dictionary with their counts, "<s>" last; without our three special symbols.

    If entries have the same spelling, text is looked up as the last of them, as in fairseq. The others keep
    their ids under a name with spaces, which no word has; they were never trained, so never generated.
    """
    entries, rows = [(START, 0)], {START: 0}
    for number, line in enumerate(read_lines(path), start=1):
        entry = line.rstrip().removesuffix(OVERWRITE)
        word, _, count = entry.rpartition(" ")
        if not (word and count.isdecimal()):
            raise ValueError(
                f"{path}, line {number}: expected 'word count', found {line!r}, as in fairseq's dict files."
            )
        if word in rows:
            if not line.rstrip().endswith(OVERWRITE):
                raise ValueError(
                    f"{path}, line {number}: expected each word once, but {word!r} is already an entry. "
                    "Early fairseq gave such a word this line's id; to keep the ids, append"
                    f"{OVERWRITE} to it."
                )
            entries[rows[word]] = (f"<overwritten in line {number}>", entries[rows[word]][1])
        rows[word] = number
        entries.append((word, int(count)))
    return [*entries[1:], entries[0]]
