"""Stages translate@SEED and ensemble@all: raw test sentences -> n-best hypotheses and attention."""

import sys
from pathlib import Path

from convs2s.base.files import read_lines
from convs2s.config.section import Languages, Seeds
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.train import RunSection
from convs2s.config.translate import TranslateSection
from convs2s.decode.length_normalization import read_alpha, with_alpha
from convs2s.decode.load import load_word_translator, models_of, translate_corpus
from convs2s.decode.translations import write_translations
from convs2s.text.words.tokenization import Tokenizer, load_tokenizer


def run(
    params: TranslateSection,
    tokenize: TokenizeParams,
    languages: Languages,
    seeds: Seeds,
    run: RunSection,
    member: str,
    trained: Path,
    vocabulary: Path,
    candidates: Path,
    truecasers: Path,
    test: Path,
    tuned: Path,
    out: Path,
) -> None:
    """Translate test/source.txt; write out/MEMBER/hypotheses.jsonl, a line per sentence, and attention.npz.

    `member` is a seed, or `ensemble` for the models trained/SEED/model of all seeds together. The stage tune
    has written tuned/MEMBER/alpha.json. Characters that the model never saw are left out of what it
    translates, and put back. With vocabulary selection, the mean number of target words per batch goes to
    stderr.
    """
    tokenizer = load_tokenizer(languages[0], tokenize, truecasers / "source.tsv")
    models = models_of(member, seeds, trained)
    search = with_alpha(params, read_alpha(tuned / member / "alpha.json"))
    translator = load_word_translator(
        models, vocabulary, candidates / "candidates.npz", search, search=run.search
    )
    print(translator.precision, file=sys.stderr)
    translated = translate_corpus(
        translator,
        read_lines(test / "source.txt"),
        tokenizer.words,
        keep_attention=True,
        restore_case=Tokenizer(languages[1], tokenize).restore_case,
    )
    write_translations([(source.words, hypotheses) for source, hypotheses in translated], out / member)
    if translator.selection is not None:
        print(translator.selection.report(), file=sys.stderr)
