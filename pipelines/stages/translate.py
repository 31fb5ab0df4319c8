"""Stage translate@SEED: raw test sentences -> n-best hypotheses and attention of one model."""

import sys
from pathlib import Path

from convs2s.config.load import load_params
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.translate import TranslateSection
from convs2s.decode.corpus import write_translations
from convs2s.decode.load_words import load_words
from convs2s.decode.tuned_alpha import settle
from convs2s.text.corpus.files import read_lines
from convs2s.text.words.tokenization import load_tokenizer


def run(
    params: TranslateSection,
    tokenize: TokenizeParams,
    languages: tuple[str, str],
    model: Path,
    vocabulary: Path,
    candidates: Path,
    truecasers: Path,
    test: Path,
    tuned: Path,
    out: Path,
) -> None:
    """Translate test/source.txt; write out/hypotheses.jsonl, a line per sentence, and out/attention.npz.

    `tuned` holds the alpha for `translate.alpha: tuned`. With vocabulary selection the mean number of target
    types of a batch is told on stderr.
    """
    tokenizer = load_tokenizer(languages[0], tokenize, truecasers / "source.tsv")
    sentences = [tokenizer.words(line) for line in read_lines(test / "source.txt")]
    table = candidates / "candidates.npz"
    translator = load_words([model], vocabulary, table, settle(params, tuned))
    write_translations(translator, sentences, out)
    if translator.selection is not None:
        print(translator.selection.report(), file=sys.stderr)


if __name__ == "__main__":
    everything = load_params()
    download = everything.download
    run(
        everything.translate,
        everything.tokenize,
        (download.source_language, download.target_language),
        *map(Path, sys.argv[1:]),
    )
