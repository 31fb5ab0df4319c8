"""fairseq's files: a checkpoint -> arguments and tensors, executing nothing; a dictionary -> its entries."""

import argparse
import contextlib
import re
import reprlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.base.files import read_lines
from convs2s.base.messages import is_out_of_memory
from convs2s.ids.vocabulary import MOST_DIGITS


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
MOST_NAMES = 3
"""Of one tensor in a checkpoint: both embeddings and the output layer may be tied."""
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


def read_fairseq_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint of either format: arguments under `args`, or within the config under `cfg`.

    Raises:
        OSError: if there is no such file.
        ValueError: if it is another kind of file, or needs far more memory than its size; it names the file.
    """
    content = load_tensors(path)
    content = content if isinstance(content, dict) else {}
    config = content.get("cfg")
    config = config if isinstance(config, dict) and config else {"model": content.get("args")}
    task_arguments = find_values(config.get("task"))
    model_arguments = find_values(config.get("model"))
    tensors = content.get("model")
    if not (model_arguments and isinstance(tensors, dict)):
        raise ValueError(
            f"{path} lacks tensors under the key `model`, or arguments under `args` or `cfg`; expected a "
            "checkpoint saved by fairseq, such as checkpoint_best.pt. A file with only tensors does not tell "
            "what model they belong to."
        )
    check_tensors(path, tensors)
    return Checkpoint(path, task_arguments | model_arguments, tensors)  # the model's override the task's


def find_values(arguments: Any) -> dict[str, Any]:
    """Return arguments by name, of a namespace or a dictionary; none of anything else."""
    values = vars(arguments) if isinstance(arguments, argparse.Namespace) else arguments
    return {str(name): value for name, value in values.items()} if isinstance(values, dict) else {}


def check_tensors(path: Path, tensors: Mapping[Any, Any]) -> None:
    """Raise ValueError unless a checkpoint's `model` has only names and tensors that its file can hold.

    A tensor may repeat one number or be a part of another, so that a few bytes seem to be gigabytes.
    """
    for name, tensor in tensors.items():
        is_tensor = isinstance(tensor, Tensor)
        is_stored = is_tensor and tensor.layout == torch.strided and tensor.device.type == "cpu"
        if not (isinstance(name, str) and is_stored and not tensor.is_quantized and not tensor.is_complex()):
            kind = type(tensor).__name__
            if is_tensor:
                kind = f"a tensor of {tensor.dtype}, {tensor.layout}, on {tensor.device}"
            raise ValueError(
                f"{path}, model: expected names and plain tensors of real numbers, found {kind} under "
                f"{reprlib.repr(name)}. Is it a checkpoint of fairseq?"
            )
    claimed = sum(tensor.nbytes for tensor in tensors.values())
    size = path.stat().st_size
    if claimed > MOST_NAMES * size:
        raise ValueError(
            f"{path}, model: expected tensors that the file's {size:,} bytes can hold, found tensors of "
            f"{claimed:,}. Save the checkpoint again, each tensor with memory of its own."
        )


def load_tensors(path: Path) -> Any:
    """Read a PyTorch file that contains only tensors, plain values and the known classes."""
    with path.open("rb") as stream, torch.serialization.safe_globals(KNOWN):
        try:
            check_members(path)
            return torch.load(stream, map_location="cpu", weights_only=True)
        except Exception as error:  # on a damaged file, PyTorch may raise anything
            if is_out_of_memory(error) and not asks_for_more(error, path.stat().st_size):
                raise
            # PyTorch's text has the advice to load the file without protection.
            cause = re.search(r"GLOBAL \S+|Unsupported operand \d+", str(error))
            fault = cause[0] if cause else f"{type(error).__name__}: {error}"
            raise ValueError(
                f"{path} cannot be loaded safely; nothing in it was executed. Expected a whole file of "
                "torch.save with only tensors, plain values and argparse.Namespace; found: "
                f"{fault}. Fetch it again if it is incomplete. If it is whole and you trust it, load it with "
                "the program that wrote it, and save "
                "{'args': argparse.Namespace(**arguments), 'model': state['model']}."
            ) from error


def check_members(path: Path) -> None:
    """Raise ValueError if a PyTorch file, a zip archive since 2020, grows when it is read, or is damaged.

    PyTorch does not compare the archive's checksums: a flipped bit would be a wrong weight.
    """
    with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        grown = sum(member.file_size for member in archive.infolist())
        if grown > path.stat().st_size:
            raise ValueError(f"an archive that grows to {grown:,} bytes; torch.save compresses nothing")
        damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"damaged data, as the checksum of {damaged} shows")


def asks_for_more(error: Exception, size: int) -> bool:
    """Return whether PyTorch could not allocate a single tensor that is larger than the whole file."""
    asked = re.search(r"tried to allocate (\d+) bytes", str(error))
    return asked is not None and int(asked[1]) > size


def read_fairseq_dictionary(path: Path) -> list[tuple[str, int]]:
    """Return the entries of a dictionary with their counts, "<s>" last; without our three special symbols.

    If entries have the same spelling, text is looked up as the last of them, as in fairseq. The others keep
    their ids under a name with spaces, which no word has; they were never trained, so never generated.
    """
    entries = [(START, 0)]
    rows = {START: 0}  # of each word, the index of its last entry
    for number, line in enumerate(read_lines(path), start=1):
        entry = line.rstrip().removesuffix(OVERWRITE)
        word, _, count = entry.rpartition(" ")
        is_word = word and " " not in word and "\t" not in word
        if not (is_word and count.isdecimal() and len(count) <= MOST_DIGITS):
            raise ValueError(
                f"{path}, line {number}: expected 'word count', found {reprlib.repr(line)}, as in fairseq's "
                "dict files."
            )
        if word in rows:
            if not line.rstrip().endswith(OVERWRITE):
                raise ValueError(
                    f"{path}, line {number}: expected each word once, but {word!r} is already an entry. "
                    "Early fairseq gave such a word this line's id; to keep the ids, append"
                    f"{OVERWRITE} to it."
                )
            earlier = rows[word]
            _, earlier_count = entries[earlier]
            entries[earlier] = (f"<overwritten in line {number}>", earlier_count)
        rows[word] = len(entries)
        entries.append((word, int(count)))
    start, *others = entries
    return [*others, start]
