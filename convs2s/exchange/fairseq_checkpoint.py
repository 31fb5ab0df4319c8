"""A fairseq checkpoint -> its arguments and tensors, without executing any pickle."""

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.exchange.fairseq_faults import fault


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
        ValueError: if it is not a fairseq checkpoint, has a format that cannot be read safely, is damaged, or
            contains an object of an unknown class; the message names the class.
    """
    content = load(path)
    tensors = content.get("model") if isinstance(content, dict) else None
    if not isinstance(tensors, dict) or not all(map(is_weight, tensors.items())):
        raise ValueError(
            f"{path} has no tensors under the key `model`; wanted a checkpoint saved by fairseq, such as "
            "checkpoint_best.pt."
        )
    return Checkpoint(path, read_arguments(path, content), tensors)


def is_weight(entry: tuple[object, object]) -> bool:
    """Return whether this is a name and a dense tensor."""
    name, tensor = entry
    return isinstance(name, str) and isinstance(tensor, Tensor) and tensor.layout == torch.strided


def load(path: Path) -> Any:
    """Read a PyTorch file that contains only tensors, plain values and the known classes."""
    with path.open("rb") as stream, torch.serialization.safe_globals(KNOWN), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about containers and protocols; the error covers them
        try:
            return torch.load(stream, map_location="cpu", weights_only=True)
        except Exception as error:  # on a damaged file, PyTorch may raise anything
            names = [entry[1] if isinstance(entry, tuple) else "argparse.Namespace" for entry in KNOWN]
            raise fault(path, error, names) from None


def read_arguments(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of model and task; the model's override the task's.

    Raises:
        ValueError: if there are none.
    """
    if isinstance(content.get("args"), argparse.Namespace):
        return plain(content["args"])
    config = content.get("cfg")
    if isinstance(config, dict) and isinstance(config.get("model"), argparse.Namespace | dict):
        return {**plain(config.get("task")), **plain(config["model"])}
    raise ValueError(
        f"{path} has neither arguments under `args` nor a config with a model under `cfg`; wanted a "
        "checkpoint saved by fairseq. A file with only tensors does not tell what model they belong to."
    )


def plain(arguments: object) -> dict[str, Any]:
    """Return arguments as a dict; they may be a namespace, a dict or missing."""
    if isinstance(arguments, argparse.Namespace):
        return dict(vars(arguments))
    return dict(arguments) if isinstance(arguments, dict) else {}
