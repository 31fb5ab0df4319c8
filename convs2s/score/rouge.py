"""ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004; §4.1, Table 6), counted by the library rouge-score.

This module adds what the library lacks, as ROUGE-1.5.5 does it:

- words are runs of ASCII letters and digits, so a hyphen separates words and other scripts have none;
- a limit in bytes cuts both summary and references, wherever it falls, even within a word or a character;
- the score against several references is over all their n-grams together (-f A);
- the jackknife is the mean over the sets of all references but one (Lin, 2004, section 2.1).

A score is the mean over summaries; an empty summary scores 0. Lead baselines of Reuters headlines score 0.1
to 0.5 points less than with the program, which also looks up irregular words (said: say).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from typing import Literal

from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

from convs2s.score.corpus_scores import Score

NAMES = ("rouge1", "rouge2", "rougeL")
TOKENIZER = DefaultTokenizer(use_stemmer=True)  # as option -m: words of more than three letters
SCORER = RougeScorer(NAMES, tokenizer=TOKENIZER)


@dataclass(frozen=True)
class Rouge:
    """How summaries are compared with references."""

    measure: Literal["recall", "f1"]
    max_bytes: int | None
    """Number of leading UTF-8 bytes of a text that count; None for all."""
    jackknife: bool
    """Whether the mean is taken over the sets of all references but one."""

    def scores(self, summaries: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Score]:
        """Return the scores of a test set by name: rouge1, rouge2, rougeL."""
        scored = [self.score_one(*pair) for pair in zip(summaries, references, strict=True)]
        signature = self.signature(references)
        means = {name: sum(scores[name] for scores in scored) / len(scored) for name in NAMES}
        return {name: Score(100 * mean, signature) for name, mean in means.items()}

    def score_one(self, summary: str, references: Sequence[str]) -> dict[str, float]:
        """Return the scores of one summary, 0 to 1, by name."""
        compared = [count_matches(self._cut(summary), self._cut(reference)) for reference in references]
        set_size = len(compared)
        if self.jackknife and len(compared) > 1:
            set_size -= 1  # each set leaves one reference out
        scores = {}
        for name in NAMES:
            sets = list(combinations([matches[name] for matches in compared], set_size))
            scores[name] = sum(map(self._measure, sets)) / len(sets)
        return scores

    def signature(self, references: Sequence[Sequence[str]]) -> str:
        """Return the signature of a score, in the style of sacreBLEU's."""
        numbers = {len(texts) for texts in references}
        return (
            f"nrefs:{numbers.pop() if len(numbers) == 1 else 'var'}|measure:{self.measure}|"
            f"bytes:{self.max_bytes or 'all'}|stem:yes|refs:together|"
            f"jackknife:{'yes' if self.jackknife else 'no'}|rouge-score:{version('rouge-score')}"
        )

    def _cut(self, text: str) -> str:
        # Neither a non-ASCII byte nor half a character at the limit is a letter.
        return text.encode("utf-8", "replace")[: self.max_bytes].decode("ascii", "replace")

    def _measure(self, matches: Sequence[tuple[int, ...]]) -> float:
        """Return the score against several references together; 0 if there is nothing to divide by."""
        hits, in_references, in_summary = map(sum, zip(*matches, strict=True))
        total = in_references if self.measure == "recall" else (in_references + in_summary) / 2
        return hits / total if total else 0.0


def count_matches(summary: str, reference: str) -> dict[str, tuple[int, int, int]]:
    """Return by the score's name how many n-grams match, how many the reference and the summary have.

    For ROUGE-L, these are words of the longest common subsequence, and of both texts.
    """
    shares = SCORER.score(reference, summary)
    lengths = [len(TOKENIZER.tokenize(text)) for text in (reference, summary)]
    matches = {}
    for name, n in zip(NAMES, (1, 2, 1), strict=True):
        in_reference, in_summary = (max(length - n + 1, 0) for length in lengths)
        matches[name] = round(shares[name].recall * in_reference), in_reference, in_summary
    return matches


SETTINGS = {
    "gigaword": Rouge("f1", max_bytes=None, jackknife=False),
    "duc2004": Rouge("recall", max_bytes=75, jackknife=True),
}
"""By name in params.yaml (evaluate.rouge): F1 of Gigaword's headlines; recall of the first 75 bytes against
several references for DUC-2004 (§4.1, T37)."""
