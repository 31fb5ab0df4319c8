"""Stages tune@SEED and tune-ensemble@all: the development set, searched once -> the best alpha (§4.3)."""

import sys
from pathlib import Path

from convs2s.base.files import atomic_path, read_folder, write_json, write_lines
from convs2s.config.results import TuneParams
from convs2s.config.section import Seeds
from convs2s.config.train import RunSection
from convs2s.config.translate import TranslateSection
from convs2s.decode.length_normalization import NEUTRAL, best_alpha, best_hypothesis, with_alpha


def run(
    params: TuneParams,
    translate: TranslateSection,
    seeds: Seeds,
    run: RunSection,
    member: str,
    trained: Path,
    vocabulary: Path,
    candidates: Path,
    valid: Path,
    development: Path,
    out: Path,
) -> None:
    """Write out/MEMBER/alpha.json, with translate.alpha; if that is `tuned`, with the alpha of the best BLEU.

    In that case out/MEMBER/alphas.csv has the scores of each alpha on the pairs of `development`, or on those
    of `valid` if there are none: BLEU of tokenized text, without unknown-word replacement. If translate.alpha
    is a number, nothing is searched, and alphas.csv has no rows. `member` is a seed, or `ensemble` for the
    models trained/SEED/model of all seeds together.
    """
    rows: list[tuple[float, float, float]] = []  # alpha, BLEU, length ratio
    chosen = {"alpha": translate.alpha}
    if translate.alpha == "tuned":
        # These import PyTorch, which takes seconds.
        from convs2s.decode.load import load_word_translator, models_of, translate_corpus  # noqa: PLC0415
        from convs2s.score.corpus_scores import length_ratio, tokenized_bleu  # noqa: PLC0415

        pairs = list(read_folder(development)) or list(read_folder(valid))
        references = [target for _, target in pairs]
        # Keep the whole beam; the alpha of the search itself only orders it.
        search = with_alpha(translate, NEUTRAL).model_copy(update={"n_best": translate.beam_size})
        models = models_of(member, seeds, trained)
        translator = load_word_translator(
            models, vocabulary, candidates / "candidates.npz", search, search=run.search
        )
        print(translator.precision, file=sys.stderr)
        translated = translate_corpus(
            translator, [source for source, _ in pairs], str.split, keep_attention=False
        )
        n_best_lists = [hypotheses for _, hypotheses in translated]
        for alpha in params.alphas:
            lines = [" ".join(best_hypothesis(hypotheses, alpha).words) for hypotheses in n_best_lists]
            rows.append((alpha, tokenized_bleu(lines, references).value, length_ratio(lines, references)))
        bleu = {alpha: score for alpha, score, _ in rows}
        best = best_alpha(bleu)
        chosen = {"alpha": best, "development_bleu": bleu[best]}
        print(f"{member}: alpha {best} has the best BLEU of the development set, {bleu[best]:.2f}")
    with atomic_path(out / member) as temporary:
        temporary.mkdir()
        table = (",".join(map(str, row)) for row in (("alpha", "bleu", "length_ratio"), *rows))
        write_lines(temporary / "alphas.csv", table)
        write_json(temporary / "alpha.json", chosen)
