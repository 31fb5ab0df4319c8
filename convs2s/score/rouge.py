"""ROUGE-1, ROUGE-2 and ROUGE-L as in ROUGE-1.5.5 (Lin, 2004; §4.1, Table 6).

The library rouge-score counts the matches. This module adds what it lacks: the limit in bytes, several
references together, the jackknife, and the program's stemmer. As in the program

- words are runs of ASCII letters and digits, so a hyphen separates words and other scripts have none;
- a limit in bytes cuts both summary and references, wherever it falls, even within a word or a character;
- the score against several references is over all their n-grams together (-f A), or that of the reference
  with the best recall (-f B);
- a score is the mean over summaries; an empty summary scores 0.

Differences: a summary is a single sentence, so ROUGE-L needs no union of subsequences; the program prints the
mean of 1,000 bootstrap samples, which differs from the mean by a few hundredths of a point; and our stemmer
lacks rare exceptions (`rouge_stemmer`). The jackknife, the mean over the sets of all references but one (Lin,
2004, section 2.1), was built into the program until version 1.4; for 1.5.5 these sets must be listed, with
the same result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import combinations
from typing import Literal

from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenize import tokenize

from convs2s.score.corpus_scores import Score
from convs2s.score.rouge_stemmer import RougeStemmer
from convs2s.text.counted import counted

NAMES = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True)
class Matches:
    """Matches between a summary and references, in n-grams or words of the common subsequence.

    Attributes:
        hits: number in both.
        wanted: number in the references.
        found: number in the summary, counted once per reference.
    """

    hits: int
    wanted: int
    found: int

    def __add__(self, other: "Matches") -> "Matches":
        return Matches(self.hits + other.hits, self.wanted + other.wanted, self.found + other.found)

    @property
    def recall(self) -> float:
        """Share of the references that the summary covers; 0 if they are empty."""
        return self.hits / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision."""
        return 2 * self.hits / (self.wanted + self.found) if self.hits else 0.0


@dataclass(frozen=True)
class Rouge:
    """How summaries are compared with references.

    Attributes:
        measure: recall, or F1.
        max_bytes: number of leading UTF-8 bytes of a text that count; None for all.
        stem: whether words of more than three letters are stemmed (-m).
        best_reference: whether only the reference with the best recall counts (-f B), not all together.
        jackknife: whether the mean is taken over the sets of all references but one.
    """

    measure: Literal["recall", "f1"]
    max_bytes: int | None
    stem: bool
    best_reference: bool
    jackknife: bool

    def scores(self, summaries: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Score]:
        """Return the scores of a test set by name: rouge1, rouge2, rougeL.

        Args:
            summaries: one text each.
            references: one or more for each summary.

        Raises:
            ValueError: if there is no summary, or a summary has no reference.
        """
        check_references(summaries, references)
        pairs = list(zip(summaries, references, strict=True))
        sums = [self.of_one(summary, texts) for summary, texts in pairs]
        signature = self.signature(references)
        return {name: Score(100 * sum(one[name] for one in sums) / len(sums), signature) for name in NAMES}

    def of_one(self, summary: str, references: Sequence[str]) -> dict[str, float]:
        """Return the scores of one summary, 0 to 1, by name."""
        words = self.words(summary)
        compared = [self.matches(words, self.words(reference)) for reference in references]
        return {name: self._over_references([one[name] for one in compared]) for name in NAMES}

    def words(self, text: str) -> list[str]:
        """Return the words of a text that count, stemmed if `stem`."""
        # The program treats neither non-ASCII bytes nor half a character at the limit as letters.
        start = text.encode("utf-8", "replace")[: self.max_bytes].decode("ascii", "replace")
        words: list[str] = tokenize(start, self._stemmer)
        return words

    def matches(self, summary: list[str], reference: list[str]) -> dict[str, Matches]:
        """Return the matches between the words of a summary and of one reference, by name."""
        shares = self._scorer.score(" ".join(reference), " ".join(summary))
        found = {}
        for name, n in zip(NAMES, (1, 2, 1), strict=True):
            total, own = (max(len(words) - n + 1, 0) for words in (reference, summary))
            found[name] = Matches(round(shares[name].recall * total), total, own)
        return found

    def signature(self, references: Sequence[Sequence[str]]) -> str:
        """Return the signature of a score, in the style of sacreBLEU's."""
        numbers = {len(texts) for texts in references}
        return "|".join([
            f"nrefs:{numbers.pop() if len(numbers) == 1 else 'var'}",
            f"measure:{self.measure}",
            f"bytes:{self.max_bytes or 'all'}",
            f"stem:{'yes' if self.stem else 'no'}",
            f"refs:{'best' if self.best_reference else 'together'}",
            f"jackknife:{'yes' if self.jackknife else 'no'}",
            f"rouge-score:{version('rouge-score')}",
        ])  # fmt: skip

    def _over_references(self, compared: Sequence[Matches]) -> float:
        values = [self._of_set(one) for one in self._sets(compared)]
        return sum(values) / len(values)

    def _sets(self, compared: Sequence[Matches]) -> Iterator[Sequence[Matches]]:
        """Yield the references that count together: all or, with the jackknife, all but each one in turn."""
        leave = self.jackknife and len(compared) > 1
        yield from combinations(compared, len(compared) - leave)

    def _of_set(self, compared: Sequence[Matches]) -> float:
        if self.best_reference:
            counted = max(compared, key=lambda one: one.recall)
        else:
            counted = sum(compared[1:], start=compared[0])
        return counted.recall if self.measure == "recall" else counted.f1

    @cached_property
    def _stemmer(self) -> RougeStemmer | None:
        return RougeStemmer() if self.stem else None

    @cached_property
    def _scorer(self) -> RougeScorer:
        return RougeScorer(NAMES, tokenizer=SpaceTokenizer())


class SpaceTokenizer:
    """A tokenizer for rouge-score, for words that are already split and stemmed."""

    def tokenize(self, text: str) -> list[str]:
        """Split at spaces."""
        return text.split()


GIGAWORD = Rouge("f1", max_bytes=None, stem=True, best_reference=False, jackknife=False)
"""F1 of headlines, as for the Gigaword test set (§4.1)."""
DUC_2004 = Rouge("recall", max_bytes=75, stem=True, best_reference=False, jackknife=True)
"""Recall of the first 75 bytes against several references, as for DUC-2004 (§4.1, T37)."""

SETTINGS = {"gigaword": GIGAWORD, "duc2004": DUC_2004}
"""By name in params.yaml (evaluate.rouge)."""


def check_references(summaries: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raise ValueError unless there is at least one summary, and each has one or more references."""
    if len(summaries) != len(references):
        raise ValueError(
            f"found {counted(len(summaries), 'summary', 'summaries')} but references for "
            f"{len(references):,}; wanted one or more references per summary. "
            "Summarize the test set that is being scored: dvc repro"
        )
    if not summaries:
        raise ValueError("there are no summaries to score; is the test set (download.test) empty?")
    for number, texts in enumerate(references, start=1):
        if not texts:
            raise ValueError(
                f"summary {number:,} has no reference; wanted one or more. Leave the summary out, or add a "
                "reference, which may be an empty line."
            )
