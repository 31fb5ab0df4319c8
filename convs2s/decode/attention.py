"""The attention of translations, and attention.npz, which holds it for each sentence's best hypothesis."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float32

from convs2s.text.corpus.files import atomic_path


@dataclass(frozen=True)
class Attention:
    """Attention weights (T, S) of a hypothesis, averaged over layers, with the tokens of both sides."""

    weights: Float[np.ndarray, "T S"]
    source: list[str]
    target: list[str]

    def halved(self) -> "Attention":
        """Return the same in float16, the precision on disk."""
        return Attention(self.weights.astype(np.float16), self.source, self.target)


def block_diagonal(blocks: Sequence[Float32[np.ndarray, "..."]]) -> Float32[np.ndarray, "T S"]:
    """Join the attention (T, S) of a sentence's parts, leaving out the EOS between them."""
    inner = [block[:-1, :-1] for block in blocks[:-1]] + [blocks[-1]]
    rows, columns = (np.cumsum([0, *(block.shape[axis] for block in inner)]) for axis in (0, 1))
    joined = np.zeros((rows[-1], columns[-1]), dtype=np.float32)
    for block, row, column in zip(inner, rows, columns, strict=False):
        joined[row : row + block.shape[0], column : column + block.shape[1]] = block
    return joined


def write_attention(path: Path, attention: Sequence[Attention]) -> None:
    """Write attention as one flat float16 array with shapes and tokens; atomic, with reproducible bytes."""
    labels = json.dumps([[item.source, item.target] for item in attention], ensure_ascii=False)
    nothing = np.zeros(0, dtype=np.float16)
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream,
            weights=np.concatenate([nothing, *(item.halved().weights.ravel() for item in attention)]),
            shapes=np.array([item.weights.shape for item in attention], dtype=np.int64).reshape(-1, 2),
            tokens=np.frombuffer(labels.encode("utf-8"), dtype=np.uint8),
        )


def read_attention(path: Path) -> list[Attention]:
    """Return the attention of each sentence's best hypothesis; (0, 0) for an empty sentence.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is damaged or not an attention file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. The stage translate writes it; run that first.")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            weights, shapes = arrays["weights"], arrays["shapes"]
            labels = json.loads(arrays["tokens"].tobytes())
        ends = shapes.prod(axis=1).cumsum()
        parts = np.split(weights, ends[:-1]) if len(shapes) else []
        return [
            Attention(part.reshape(shape), source, target)
            for part, shape, (source, target) in zip(parts, shapes, labels, strict=True)
        ]
    except (OSError, EOFError, KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is damaged or not an attention file ({error}). Wanted a file written by the stage "
            "translate; run that stage again."
        ) from error
