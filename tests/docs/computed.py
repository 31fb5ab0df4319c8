"""What the model computes and which fast paths run, in a process whose code may be an edited copy.

`python -m tests.docs.computed FOLDER [KEY=NUMBER]` writes it to FOLDER/computed.json.
"""

import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

import convs2s
from convs2s.model.initialization import fold_weight_norm
from convs2s.search.choose_model import choose_model
from tests.model.small import sentence, small_model
from tests.train.tiny import tiny_training


@contextmanager
def messages(found: list[str]) -> Iterator[None]:
    """Append the warnings of the block to a list."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found += [str(warning.message) for warning in caught if re.match("The CPU's", str(warning.message))]


def main(folder: Path, changes: dict[str, float]) -> None:
    """Compute logits of a small model in eval mode and in training; choose its decoder; build a training."""
    torch.manual_seed(1)
    model = small_model(**changes)
    source, target = (torch.stack([sentence(7, 40, start) for start in range(4)]) for _ in range(2))
    training = model(source, target)[0]
    model.eval().requires_grad_(False)
    logits = model(source, target)[0]
    fold_weight_norm(model)
    decoding = list[str]()
    layers = list[str]()
    with messages(decoding):
        decoder = choose_model(model, "float32", torch.device("cpu"))
    with messages(layers):
        tiny_training(folder, dropout=0.3)
    result = {
        "code": convs2s.__file__,
        "logits": logits.flatten().tolist(),
        "training logits": training.flatten().tolist(),
        "decoder": type(decoder).__name__,
        "warnings": layers + decoding,
    }
    (folder / "computed.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    pairs = (argument.split("=") for argument in sys.argv[2:])
    main(Path(sys.argv[1]), {key: float(value) for key, value in pairs})
