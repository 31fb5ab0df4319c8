"""Length normalization: rerank one search for each alpha, and pick the best alpha, kept in alpha.json (§4.3).

The search itself compares hypotheses only by log-likelihood, and ends when beam_size are finished; alpha
only ranks those. So reranking all beam_size hypotheses of a sentence gives the result of another search with
that alpha: the same hypotheses, scores and order. There are two exceptions. If n_best is less than beam_size,
the hypothesis that another alpha ranks first may be missing. And a sentence longer than the position table
is translated in parts: a search ranks the hypotheses of each part separately, and its score counts the EOS
of each part; here whole sentences are ranked, joined from parts of equal rank, with one EOS.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from convs2s.base.files import read_json
from convs2s.config.translate import TranslateParams, TranslateSection
from convs2s.decode.translations import Hypothesis

NEUTRAL = 1.0
"""Gives the mean over tokens, the paper's choice where it does not tune alpha."""


def best_hypothesis(hypotheses: Sequence[Hypothesis], alpha: float) -> Hypothesis:
    """Return the hypothesis that alpha ranks first; on a tie, the shorter one, which was finished first."""
    from convs2s.search.search import final_score  # noqa: PLC0415  # PyTorch takes seconds, and others need none

    def rank(hypothesis: Hypothesis) -> tuple[float, int]:
        length = len(hypothesis.tokens)
        return -final_score(hypothesis.log_likelihood, length, alpha), length

    return min(hypotheses, key=rank)


def best_alpha(scores: Mapping[float, float]) -> float:
    """Return the alpha with the highest score; on a tie, the one nearest to 1, then the smaller one."""
    return min(scores, key=lambda alpha: (-scores[alpha], abs(alpha - NEUTRAL), alpha))


def with_alpha(params: TranslateSection, alpha: float) -> TranslateParams:
    """Return the same search with this alpha."""
    return TranslateParams.model_validate({**params.model_dump(), "alpha": alpha})


def read_alpha(path: Path) -> float:
    """Return the alpha in alpha.json, from the stage tune: that of params.yaml, or the best one."""
    return float(read_json(path)["alpha"])
