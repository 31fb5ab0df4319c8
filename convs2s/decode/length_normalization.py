"""Length normalization: one search ranked anew for each alpha, and the alpha that is best (§4.3).

The search itself compares hypotheses by log-likelihood alone, and ends when beam_size are finished; alpha
only ranks these. So all beam_size hypotheses of a sentence, ranked anew, are what another search with that
alpha finds: the same hypotheses, scores and order. Two things are not the same. Fewer hypotheses than
beam_size (n_best) may lack the one that another alpha ranks first. And a sentence beyond the position table
is translated in parts: a search ranks the hypotheses of each part by themselves, and its score counts each
part's end mark; here whole sentences are ranked, joined from parts of equal rank, with one end mark.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from convs2s.config.translate import TranslateParams, TranslateSection
from convs2s.decode.hypotheses import Sentence, TextHypothesis
from convs2s.text.corpus.files import read_lines, write_lines

NEUTRAL = 1.0
"""The mean over tokens, the paper's alpha wherever it tunes none."""


def final_score(hypothesis: TextHypothesis, alpha: float) -> float:
    """Return log-likelihood / |y|^alpha, where |y| counts the end mark; 0 for the empty sentence's."""
    score: float = hypothesis.log_likelihood / max(1, len(hypothesis.tokens)) ** alpha
    return score


def best_hypothesis(sentence: Sentence, alpha: float) -> TextHypothesis:
    """Return the hypothesis that alpha ranks first; of equal ones the shorter, which was finished first."""
    return min(sentence.hypotheses, key=lambda one: (-final_score(one, alpha), len(one.tokens)))


def best_alpha(scores: Mapping[float, float]) -> float:
    """Return the alpha with the highest score; of equal ones the nearest to 1, then the smaller."""
    return min(scores, key=lambda alpha: (-scores[alpha], abs(alpha - NEUTRAL), alpha))


def write_alpha(path: Path, facts: Mapping[str, float]) -> None:
    """Write the alpha that was chosen, and what else is told of it, as JSON; no facts if none was chosen."""
    write_lines(path, [json.dumps(dict(facts), indent=2)])


def with_alpha(params: TranslateSection, alpha: float) -> TranslateParams:
    """Return the same search with this number for alpha."""
    return TranslateParams.model_validate({**params.model_dump(), "alpha": alpha})


def settle(params: TranslateSection, path: Path) -> TranslateParams:
    """Return the search with alpha as a number: that of params.yaml, or the one that `write_alpha` wrote.

    Raises:
        FileNotFoundError: if alpha is `tuned` and there is no such file.
        ValueError: if alpha is `tuned` and the file has none.
    """
    if params.alpha != "tuned":
        return with_alpha(params, params.alpha)
    text = "\n".join(read_lines(path))
    try:
        return with_alpha(params, json.loads(text)["alpha"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"translate.alpha is tuned, but {path} holds {text!r}; wanted the alpha that the stage tune has "
            "chosen. Run: dvc repro"
        ) from None
