"""Hypotheses in words, and hypotheses.jsonl: a line per sentence with its source and n-best hypotheses."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from convs2s.decode.attention import Attention
from convs2s.decode.unknown_replacement import Unknown
from convs2s.text.corpus.files import read_lines, write_lines

# The last digits of a sum depend on the number of threads; files must not.
DECIMALS = 4


@dataclass(frozen=True)
class TextHypothesis:
    """A translation in words.

    Attributes:
        tokens: pieces, or words without BPE; EOS last.
        words: spelled by the tokens, still tokenized; `<unk>` for unknown words.
        log_likelihood: in nats.
        score: log_likelihood / |y|^alpha.
        sources: for each token, the index of the source word attended to most, -1 if there is none.
        unknowns: the unknown words, with the source words they are aligned to.
        attention: if requested, for a sentence's best hypothesis only; not part of hypotheses.jsonl.
    """

    tokens: list[str]
    words: list[str]
    log_likelihood: float
    score: float
    sources: list[int]
    unknowns: list[Unknown]
    attention: Attention | None = None


def write_hypotheses(path: Path, sentences: Iterable[tuple[list[str], list[TextHypothesis]]]) -> None:
    """Write source words and hypotheses, best first, as JSON lines; scores have four decimals."""
    lines = (
        {"source": source, "hypotheses": [as_json(hypothesis) for hypothesis in hypotheses]}
        for source, hypotheses in sentences
    )
    write_lines(path, (json.dumps(line, ensure_ascii=False) for line in lines))


def as_json(hypothesis: TextHypothesis) -> dict[str, Any]:
    """Return the JSON object of a hypothesis."""
    content = asdict(replace(hypothesis, attention=None))
    del content["attention"]
    return content | {key: round(content[key], DECIMALS) for key in ("log_likelihood", "score")}


def read_hypotheses(path: Path) -> Iterator[tuple[list[str], list[TextHypothesis]]]:
    """Yield the source words and the hypotheses, at least one, of each sentence.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not in the format of `write_hypotheses`, with the line number.
    """
    for number, line in enumerate(read_lines(path), start=1):
        try:
            content = json.loads(line)
            source, hypotheses = content["source"], [parse_hypothesis(item) for item in content["hypotheses"]]
            if not hypotheses:
                raise ValueError("no hypothesis")
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number}: found no sentence and hypotheses ({type(error).__name__}: {error}). "
                "Wanted a line written by the stage translate; run that stage again."
            ) from error
        yield source, hypotheses


def parse_hypothesis(content: dict[str, Any]) -> TextHypothesis:
    """Return the hypothesis that a JSON object describes."""
    return TextHypothesis(**{**content, "unknowns": [Unknown(**unknown) for unknown in content["unknowns"]]})
