"""BLEU and chrF by sacreBLEU, each with its signature, and the length ratio (§4.3).

The paper scores with multi-bleu on tokenized text, but En-Ro with mteval-v13a on detokenized text; we have
both. A score without its signature cannot be compared with others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

WORDS = "13a"
"""sacreBLEU's name for the tokenization of mteval-v13a.pl, for languages with spaces between words."""
TOKENIZERS = {"yue": "zh", "zh": "zh", **dict.fromkeys(("bo", "dz", "ja", "km", "lo", "my", "th"), "char")}
"""sacreBLEU's tokenizers for languages without spaces, by ISO 639 code; those that need no other program."""
UNKNOWN = "<unk>"
"""How unknown words appear in tokenized translations."""


METRICS: Mapping[str, Callable[[str], Metric]] = {
    "bleu": lambda tokenizer: BLEU(tokenize=tokenizer),
    "chrf": lambda _: CHRF(),
}
"""sacreBLEU's metrics of detokenized text, made for a tokenizer of BLEU, by the names of their scores.

Another metric of words (TER, say) needs a setting of its own for languages without spaces between them.
Tables of several runs compare each of them, with p.
"""


@dataclass(frozen=True)
class Score:
    """A score, 0 to 100, and the sacreBLEU signature that describes how it was computed."""

    value: float
    signature: str


def choose_tokenizer(language: str) -> str:
    """Return the name of BLEU's tokenizer for text in a language."""
    return TOKENIZERS.get(language, WORDS)


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenizer: str = WORDS) -> Score:
    """Return the BLEU of detokenized text, as mteval-v13a.pl computes it."""
    return score_corpus(METRICS["bleu"](tokenizer), hypotheses, references)


def tokenized_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return the BLEU of tokenized text, words separated by spaces, as multi-bleu.perl computes it.

    The two differ only if no n-gram of some order matches: multi-bleu then returns 0, but we smooth.
    """
    # force: no warning, because the text is tokenized on purpose.
    return score_corpus(BLEU(tokenize="none", force=True), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return chrF2 of detokenized text (Popović, 2015)."""
    return score_corpus(METRICS["chrf"](WORDS), hypotheses, references)


def score_corpus(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return a score of sacreBLEU with its signature."""
    if not references or len(hypotheses) != len(references):
        raise ValueError(
            f"expected a test set with one reference per hypothesis, found {len(hypotheses):,} hypotheses "
            f"and {len(references):,} references. Translate the test set that is being scored: dvc repro"
        )
    return Score(metric.corpus_score(hypotheses, [references]).score, str(metric.get_signature()))


def sentence_bleu(hypothesis: str, reference: str, tokenizer: str = WORDS) -> float:
    """Return the BLEU of one sentence; n-gram orders longer than the sentence do not count."""
    return float(BLEU(tokenize=tokenizer, effective_order=True).sentence_score(hypothesis, [reference]).score)


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """Return chrF2 of one sentence."""
    return float(CHRF().sentence_score(hypothesis, [reference]).score)


def length_ratio(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return hypothesis words per reference word, in tokenized text."""
    words = sum(len(line.split()) for line in hypotheses)
    reference_words = sum(len(line.split()) for line in references)
    return words / max(reference_words, 1)
