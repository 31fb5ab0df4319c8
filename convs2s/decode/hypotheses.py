"""Hypotheses on disk: hypotheses.jsonl, a line per sentence, and attention.npz for the best of each."""

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from convs2s.decode.unknown_replacement import Unknown
from convs2s.text.corpus.files import atomic_path, read_lines

# The last digits of a sum depend on how many threads added it up; files must not.
DECIMALS = 4


@dataclass(frozen=True)
class TextHypothesis:
    """A translation in words.

    Attributes:
        tokens: pieces, the end mark last; those of words themselves without BPE.
        words: what the tokens spell, still tokenized; `<unk>` for unknown ones.
        log_likelihood: in nats.
        score: log_likelihood / |y|^alpha.
        sources: for each token the index of the source word attended to most, -1 if there is none.
        unknowns: the unknown words, with what they stand for.
    """

    tokens: list[str]
    words: list[str]
    log_likelihood: float
    score: float
    sources: list[int]
    unknowns: list[Unknown]


@dataclass(frozen=True)
class Sentence:
    """A source sentence, in words, and its hypotheses, best first; at least one."""

    source: list[str]
    hypotheses: list[TextHypothesis]


@dataclass(frozen=True)
class Attention:
    """Attention weights (T, S) of a hypothesis, the mean of all layers, with the tokens of both sides."""

    weights: Float[np.ndarray, "T S"]
    source: list[str]
    target: list[str]

    def halved(self) -> "Attention":
        """Return the same in float16, as it is kept on disk."""
        return Attention(self.weights.astype(np.float16), self.source, self.target)


def write_hypotheses(path: Path, sentences: Iterable[Sentence]) -> None:
    """Write sentences as JSON, one a line, atomically; likelihoods and scores to four decimals."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        for sentence in sentences:
            content = asdict(sentence)
            for hypothesis in content["hypotheses"]:
                for key in ("log_likelihood", "score"):
                    hypothesis[key] = round(hypothesis[key], DECIMALS)
            stream.write(json.dumps(content, ensure_ascii=False) + "\n")


def read_hypotheses(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a file that `write_hypotheses` wrote.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not such a sentence, with its number.
    """
    for number, line in enumerate(read_lines(path), start=1):
        try:
            content = json.loads(line)
            hypotheses = [parse_hypothesis(hypothesis) for hypothesis in content["hypotheses"]]
            if not hypotheses:
                raise ValueError("no hypothesis")
            sentence = Sentence(content["source"], hypotheses)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number}: found no sentence and hypotheses ({type(error).__name__}: {error}). "
                "Wanted a line as the stage translate writes it; run that stage again."
            ) from error
        yield sentence


def parse_hypothesis(content: dict[str, Any]) -> TextHypothesis:
    """Return the hypothesis that a JSON object describes."""
    return TextHypothesis(**{**content, "unknowns": [Unknown(**unknown) for unknown in content["unknowns"]]})


def write_attention(path: Path, attention: Sequence[Attention]) -> None:
    """Write attention as one flat float16 array with shapes and tokens, atomically; same bytes every time."""
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
        ValueError: if the file is damaged or no attention file.
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
            f"{path} is no attention file or damaged ({error}). Wanted one as the stage translate writes it; "
            "run that stage again."
        ) from error
