"""The scores that there are, and how tables, summaries, reports and model cards show them (§4.3).

`convs2s.score.evaluation.score_text` computes them; of those of sacreBLEU, `METRICS` in
`convs2s.score.corpus_scores` has the metric. One that is computed but has no row here is an error.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ScoreKind:
    """A score.

    Attributes:
        title: in tables.
        digits: decimals in tables; 0.01 BLEU is far below the spread between seeds.
        card: its title in a model card, and the Hugging Face Hub's name for its metric; None for what does
            not say how good a model is, and so has no signature.
        is_main: whether the tables of runs show it.
    """

    title: str
    digits: int
    card: tuple[str, str] | None
    is_main: bool = False


SCORES = {
    "bleu": ScoreKind("BLEU", 2, ("BLEU, detokenized", "bleu"), is_main=True),
    "bleu_tokenized": ScoreKind("tokenized BLEU", 2, ("BLEU, tokenized", "bleu")),
    "chrf": ScoreKind("chrF2", 2, ("chrF2", "chrf"), is_main=True),
    "rouge1": ScoreKind("ROUGE-1", 2, ("ROUGE-1", "rouge")),
    "rouge2": ScoreKind("ROUGE-2", 2, ("ROUGE-2", "rouge")),
    "rougeL": ScoreKind("ROUGE-L", 2, ("ROUGE-L", "rouge")),
    "length_ratio": ScoreKind("length ratio", 4, None),
    "unknown_words": ScoreKind("<unk>", 1, None),
}
"""By the name in scores.csv and metrics.json, in the order of tables."""
DIGITS = {name: kind.digits for name, kind in SCORES.items()}
TITLES = {name: kind.title for name, kind in SCORES.items()}
