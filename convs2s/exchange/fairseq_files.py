"""fairseq's files: a checkpoint -> arguments and tensors, executing nothing; a dictionary -> its entries."""

import argparse
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.base.files import read_lines
from convs2s.exchange.fairseq_weights import unwrap_names


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

START = "<s>"  # goes last, as in the weights
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
    """Read a checkpoint of either format: arguments under `args`, or within the config under `cfg`.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a fairseq checkpoint, is damaged, or cannot be loaded safely.
    """
    content = load(path)
    tensors = content.get("model") if isinstance(content, dict) else None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise ValueError(
            f"{path} has no tensors under the key `model`; expected a checkpoint saved by fairseq, such as "
            "checkpoint_best.pt."
        )
    return Checkpoint(path, read_arguments(path, content), unwrap_names(tensors))


def load(path: Path) -> Any:
    """Read a PyTorch file that contains only tensors, plain values and the known classes."""
    with path.open("rb") as stream, torch.serialization.safe_globals(KNOWN), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about containers and protocols; the error covers them
        try:
            return torch.load(stream, map_location="cpu", weights_only=True)
        except Exception as error:  # on a damaged file, PyTorch may raise anything
            # PyTorch's text, without its advice to load the file without protection.
            text = " ".join(str(error).split())
            cause = re.search(r"GLOBAL \S+|Unsupported operand \d+", text)
            fault = cause[0] if cause else f"{type(error).__name__}: {text.split('. ')[0][:200]}"
    raise ValueError(
        f"{path} cannot be loaded safely; nothing in it was executed. Expected a whole file of torch.save in "
        f"pickle protocol 2, with only tensors, plain values and argparse.Namespace; found: {fault}. Fetch "
        "it again if it is incomplete. If it is whole and you trust it, load it with the program that wrote "
        "it, and save {'args': argparse.Namespace(**arguments), 'model': state['model']}."
    )


def read_arguments(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of model and task; the model's override the task's."""
    config = content.get("cfg") or {"model": content.get("args")}
    arguments = dict[str, Any]()
    for part in ("task", "model"):
        values = config.get(part)
        arguments |= vars(values) if isinstance(values, argparse.Namespace) else values or {}
    if not config.get("model"):
        raise ValueError(
            f"{path} has neither arguments under `args` nor a config with a model under `cfg`; expected a "
            "checkpoint saved by fairseq. A file with only tensors does not tell what model they belong to."
        )
    return arguments


def read_fairseq_dictionary(path: Path) -> list[tuple[str, int]]:
    """Return the entries of a dictionary with their counts, "<s>" last; without our three special symbols.

    If entries have the same spelling, text is looked up as the last of them, as in fairseq. The others keep
    their ids under a name with spaces, which no word has; they were never trained, so never generated.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not 'word count', or a word is repeated without fairseq's flag.
    """
    lines: dict[str, int] = {}
    entries: list[tuple[str, int]] = []
    start = START
    for number, line in enumerate(read_lines(path), start=1):
        entry = line.rstrip()
        word, space, count = entry.removesuffix(OVERWRITE).rstrip().rpartition(" ")
        if not (space and word and "\t" not in word and count.isascii() and count.isdigit()):
            raise ValueError(
                f"{path}, line {number}: expected 'word count', found {line!r}, as in fairseq's dict files."
            )
        if (word in lines or word == START) and not entry.endswith(OVERWRITE):
            earlier = f"in line {lines[word]}" if word in lines else "the start symbol"
            raise ValueError(
                f"{path}, line {number}: expected each word once, but {word!r} is already {earlier}. Early "
                f"fairseq gave such a word this line's id; to keep the ids, append{OVERWRITE} to it."
            )
        overwritten = f"<overwritten in line {number}>"
        if word in lines:
            entries[lines[word] - 1] = (overwritten, entries[lines[word] - 1][1])
        elif word == START:
            start = overwritten
        lines[word] = number
        entries.append((word, int(count)))
    return [*entries, (start, 0)]
