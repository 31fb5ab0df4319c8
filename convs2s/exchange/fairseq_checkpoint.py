"""A fairseq checkpoint -> its arguments and tensors, without executing any pickle."""

import argparse
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


class Meter:
    """Takes the place of fairseq's running averages of training, which some checkpoints hold; never used."""


# What a checkpoint may hold beside tensors, numbers, text and containers of these. The loader makes such
# objects and sets their attributes; it calls nothing of them.
KNOWN: list[Any] = [
    argparse.Namespace,
    (Meter, "fairseq.meters.AverageMeter"),
    (Meter, "fairseq.meters.TimeMeter"),
    (Meter, "fairseq.meters.StopwatchMeter"),
]


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says of its model.

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
        ValueError: if it is no checkpoint of fairseq, is damaged, or holds an object of a class that is not
            known, which is named.
    """
    content = load(path)
    tensors = content.get("model") if isinstance(content, dict) else None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise ValueError(
            f"{path} has no tensors under the key `model`; wanted a checkpoint as fairseq saves it, such as "
            "checkpoint_best.pt."
        )
    return Checkpoint(path, read_arguments(path, content), tensors)


def load(path: Path) -> Any:
    """Read a file of PyTorch with nothing in it but tensors, plain values and the known classes."""
    with path.open("rb") as stream, torch.serialization.safe_globals(KNOWN):
        try:
            return torch.load(stream, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            foreign = re.search(r"GLOBAL ([\w.]+)", str(error))
            if foreign:
                raise refusal(path, foreign[1]) from None
            raise damage(path, str(error)) from error
        except (EOFError, RuntimeError, OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise damage(path, str(error)) from error


def refusal(path: Path, name: str) -> ValueError:
    """Return the error that says which class is foreign, and what to do."""
    known = ", ".join(entry[1] if isinstance(entry, tuple) else "argparse.Namespace" for entry in KNOWN)
    return ValueError(
        f"{path} holds an object of the class {name}, which is refused, for a pickle can run any code; "
        f"nothing was executed. Wanted tensors, plain values, and of classes only {known}. If you trust the "
        "file, load it with the program that made it, and save there only what is needed: "
        "torch.save({'args': argparse.Namespace(**arguments), 'model': state['model']}, 'clean.pt')."
    )


def damage(path: Path, reason: str) -> ValueError:
    """Return the error that says that a file is none of PyTorch's."""
    reason = " ".join(reason.split())[-200:] or "it ends early"
    return ValueError(
        f"{path} cannot be read as a checkpoint: {reason}. Wanted a whole file as torch.save writes it: is "
        "the download incomplete? Fetch it again."
    )


def read_arguments(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of model and task; the model's go before the task's.

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
        "checkpoint as fairseq saves it. A file of tensors alone does not say what model they belong to."
    )


def plain(arguments: object) -> dict[str, Any]:
    """Return arguments that are a namespace, a dict or missing as a dict."""
    if isinstance(arguments, argparse.Namespace):
        return dict(vars(arguments))
    return dict(arguments) if isinstance(arguments, dict) else {}
