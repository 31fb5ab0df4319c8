"""Unknown-word replacement: a dictionary's word, else a copy of the source word attended to (§4.3)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from convs2s.base.files import write_lines
from convs2s.base.messages import inflect


@dataclass(frozen=True)
class Unknown:
    """An unknown word of a hypothesis.

    Attributes:
        word: its index among the hypothesis's words.
        source: index of the source word with the most attention, averaged over layers (T7). With word
            pieces, the word that the piece belongs to.
        past_end: whether the source's EOS got even more attention, and was skipped (T34).
    """

    word: int
    source: int
    past_end: bool


@dataclass(frozen=True)
class Replacement:
    """The replacement of an unknown word, and how it was found."""

    word: int
    source_word: str
    replacement: str
    how: Literal["dictionary", "copy"]
    past_end: bool


def replace_unknowns(
    source: Sequence[str],
    words: Sequence[str],
    unknowns: Sequence[Unknown],
    dictionary: Mapping[str, str],
) -> tuple[list[str], list[Replacement]]:
    """Return the hypothesis's words with unknown words replaced, and a record of each replacement.

    Args:
        source: words of the source sentence.
        words: of the hypothesis, with its `unknowns`.
        dictionary: surface source word -> the target word it is most often aligned with (T33).
    """
    replaced = list(words)
    records = []
    for unknown in unknowns:
        source_word = source[unknown.source]
        how: Literal["dictionary", "copy"] = "dictionary" if source_word in dictionary else "copy"
        replaced[unknown.word] = dictionary.get(source_word, source_word)
        records.append(Replacement(unknown.word, source_word, replaced[unknown.word], how, unknown.past_end))
    return replaced, records


def write_replacements(path: Path, sentences: Iterable[Sequence[Replacement]]) -> str:
    """Write a table of the words replaced; return a one-sentence summary.

    Lines and words are counted from 1; eos is 1 where the source's EOS got the most attention (T34).
    """
    lines = ["line\tword\tsource_word\treplacement\thow\teos"]
    counts = Counter[str]()
    for number, records in enumerate(sentences, start=1):
        for r in records:
            columns = (number, r.word + 1, r.source_word, r.replacement, r.how, int(r.past_end))
            lines.append("\t".join(map(str, columns)))
            counts[r.how] += 1
            if r.past_end:
                counts["EOS"] += 1
    write_lines(path, lines)
    return (
        f"replaced {inflect(len(lines) - 1, 'unknown word')}: {counts['dictionary']} from the dictionary, "
        f"{counts['copy']} copied; {counts['EOS']} attended mostly to the source's EOS"
    )
