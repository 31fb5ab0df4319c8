"""Translations in words, and the files that hold them; does not import PyTorch.

hypotheses.jsonl has a line per sentence with its source and n-best hypotheses, attention.npz the attention of
each sentence's best one, and NAME.txt text for people.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from convs2s.base.files import atomic_path, read_lines, write_lines
from convs2s.base.messages import inflect
from convs2s.decode.unknown_replacement import Unknown
from convs2s.text.words.literals import Hidden
from convs2s.text.words.tokenization import Tokenizer

DECIMALS = 4  # the last digits of a sum depend on the number of threads; files must not
CONTROL = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Attention:
    """Attention weights (T, S) of a hypothesis, averaged over layers, with the tokens of both sides."""

    weights: Float[np.ndarray, "T S"]
    source: list[str]
    target: list[str]


@dataclass(frozen=True)
class PutBack:
    """Text with characters that the model never saw, which was left out of the source and put back.

    Attributes:
        word: index of the hypothesis's word that is this text, or that it is attached to.
        source: index of the source word that it is.
        text: as in the source.
    """

    word: int
    source: int
    text: str


@dataclass(frozen=True)
class Hypothesis:
    """A translation in words.

    Attributes:
        tokens: pieces, or words without BPE; EOS last.
        words: spelled by the tokens, still tokenized; `<unk>` for unknown words; with what was put back.
        log_likelihood: in nats.
        score: log_likelihood / |y|^alpha, by which the search ranked it; of a sentence that is longer than
            the position table, the mean over its parts.
        sources: for each token, the index of the source word attended to most, -1 if there is none.
        unknowns: the unknown words, with the source words they are aligned to.
        attention: if requested, for a sentence's best hypothesis only; not part of hypotheses.jsonl.
        put_back: what was left out of the source and put back, in order; tokens, scores and attention are of
            what the model saw.
        places: the indices of the words that the tokens spell among `words`; empty if nothing was put back.
        unknown_characters: number of the source's characters that the model never saw.
        source_pieces: for each token, the index of the source piece attended to most, of those that the model
            saw; not part of hypotheses.jsonl.
        hidden: the text that each `OBJECT` among the words replaces, in order; empty if none; not part of
            hypotheses.jsonl.
    """

    tokens: list[str]
    words: list[str]
    log_likelihood: float
    score: float
    sources: list[int]
    unknowns: list[Unknown]
    attention: Attention | None = None
    put_back: list[PutBack] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    unknown_characters: int = 0
    source_pieces: list[int] = field(default_factory=list, compare=False)
    hidden: list[Hidden] = field(default_factory=list)


def write_translations(sentences: Sequence[tuple[list[str], list[Hypothesis]]], out: Path) -> None:
    """Write source words and hypotheses, best first, to the folder `out`, all or nothing."""
    attention = [best.attention for _, (best, *_) in sentences if best.attention is not None]
    with atomic_path(out) as temporary:
        temporary.mkdir()
        write_hypotheses(temporary / "hypotheses.jsonl", sentences)
        write_attention(temporary / "attention.npz", attention)


def write_hypotheses(path: Path, sentences: Iterable[tuple[list[str], list[Hypothesis]]]) -> None:
    """Write source words and hypotheses, best first, as JSON lines; scores have four decimals."""
    lines = (
        {"source": source, "hypotheses": [as_json(hypothesis) for hypothesis in hypotheses]}
        for source, hypotheses in sentences
    )
    write_lines(path, (json.dumps(line, ensure_ascii=False) for line in lines))


def as_json(hypothesis: Hypothesis) -> dict[str, Any]:
    """Return the JSON object of a hypothesis."""
    content = asdict(replace(hypothesis, attention=None))
    del content["attention"], content["source_pieces"], content["hidden"]
    if not hypothesis.unknown_characters:
        for name in ("put_back", "places", "unknown_characters"):
            del content[name]
    return content | {key: round(content[key], DECIMALS) for key in ("log_likelihood", "score")}


def read_hypotheses(path: Path) -> Iterator[tuple[list[str], list[Hypothesis]]]:
    """Yield the source words and the hypotheses, at least one, of each sentence."""
    for line in read_lines(path):
        content = json.loads(line)
        yield content["source"], [from_json(row) for row in content["hypotheses"]]


def from_json(content: dict[str, Any]) -> Hypothesis:
    """Return the hypothesis of a JSON object."""
    unknowns = [Unknown(**unknown) for unknown in content["unknowns"]]
    put_back = [PutBack(**item) for item in content.get("put_back", [])]
    return Hypothesis(**{**content, "unknowns": unknowns, "put_back": put_back})


def write_attention(path: Path, attention: Sequence[Attention]) -> None:
    """Write attention as one flat float16 array with shapes and tokens; atomic, with reproducible bytes."""
    labels = json.dumps([[item.source, item.target] for item in attention], ensure_ascii=False)
    rows = [np.zeros(0), *(item.weights.ravel() for item in attention)]
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream,
            weights=np.concatenate(rows).astype(np.float16),
            shapes=np.array([item.weights.shape for item in attention], dtype=np.int64).reshape(-1, 2),
            tokens=np.frombuffer(labels.encode("utf-8"), dtype=np.uint8),
        )


def read_attention(path: Path) -> list[Attention]:
    """Return the attention of each sentence's best hypothesis; (0, 0) for an empty sentence."""
    with np.load(path, allow_pickle=False) as arrays:
        weights = arrays["weights"]
        shapes = arrays["shapes"]
        labels = json.loads(arrays["tokens"].tobytes())
    ends = shapes.prod(axis=1).cumsum()
    parts = np.split(weights, ends[:-1]) if len(shapes) else []
    return [
        Attention(part.reshape(shape), source, target)
        for part, shape, (source, target) in zip(parts, shapes, labels, strict=True)
    ]


def describe_unknown(count: int, done: str = "copied, not translated") -> str:
    """Say that characters were unknown, and what was done with them and with words of such letters."""
    return f"{inflect(count, 'unknown character')}: never seen in training, so {done}"


def one_line(text: str) -> str:
    """Return the text with a space for each control character except tabs: line ends, escape sequences.

    A vocabulary may contain any of them, because corpora do.
    """
    return CONTROL.sub(" ", text)


def write_text(folder: Path, name: str, sentences: Sequence[Sequence[str]], tokenizer: Tokenizer) -> None:
    """Write folder/NAME.txt, detokenized, and NAME.tok.txt, space-separated words; neither is truecased."""
    write_lines(folder / f"{name}.txt", [one_line(tokenizer.detokenize(list(words))) for words in sentences])
    tokenized = (" ".join(tokenizer.restore_case(list(words))) for words in sentences)
    write_lines(folder / f"{name}.tok.txt", [one_line(line) for line in tokenized])
