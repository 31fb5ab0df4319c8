"""Stages translate@SEED and ensemble: raw test sentences -> n-best hypotheses and attention."""

import sys
from pathlib import Path

from convs2s.config.tokenize import TokenizeParams
from convs2s.config.translate import TranslateSection
from convs2s.decode.members import models_of
from convs2s.decode.translations import write_translations
from convs2s.decode.tuned_alpha import settle
from convs2s.text.corpus.files import read_lines
from convs2s.text.words.tokenization import load_tokenizer
from pipelines.stages.values import Languages, Seeds


def run(
    params: TranslateSection,
    tokenize: TokenizeParams,
    languages: Languages,
    seeds: Seeds,
    member: str,
    trained: Path,
    vocabulary: Path,
    candidates: Path,
    truecasers: Path,
    test: Path,
    tuned: Path,
    out: Path,
) -> None:
    """Translate test/source.txt; write out/hypotheses.jsonl, a line per sentence, and out/attention.npz.

    `member` is a seed, or `ensemble` for the models trained/SEED/model of all seeds together; with a single
    seed the ensemble is that seed's model, whose translations exist already, and both files hold no sentence.
    `tuned` holds the alpha for `translate.alpha: tuned`. With vocabulary selection, the mean number of target
    words of a batch goes to stderr.
    """
    models = models_of(member, seeds, trained)
    if not models:
        write_translations([], [], out)
        return
    from convs2s.decode.corpus import translate_corpus  # noqa: PLC0415  # imports PyTorch: seconds
    from convs2s.decode.load_words import load_words  # noqa: PLC0415

    tokenizer = load_tokenizer(languages[0], tokenize, truecasers / "source.tsv")
    sentences = [tokenizer.words(line) for line in read_lines(test / "source.txt")]
    table = candidates / "candidates.npz"
    translator = load_words(models, vocabulary, table, settle(params, tuned))
    write_translations(sentences, translate_corpus(translator, sentences, keep_attention=True), out)
    if translator.selection is not None:
        print(translator.selection.report(), file=sys.stderr)
