"""Stage ensemble: raw test sentences -> n-best hypotheses and attention of all seeds' models together."""

import sys
from collections.abc import Sequence
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
    seeds: Sequence[int],
    trained: Path,
    vocabulary: Path,
    candidates: Path,
    truecasers: Path,
    test: Path,
    tuned: Path,
    out: Path,
) -> None:
    """Translate test/source.txt with trained/SEED/model of every seed; write as the stage translate does.

    Models of other seeds in `trained` take no part: with seeds 1 to 10 trained, `train.seeds` of 1 to 8 and
    then of all give both ensembles of Table 2 without further training (T24). `tuned` holds the ensemble's
    alpha for `translate.alpha: tuned`.

    With a single seed the ensemble is that seed's model, whose translations exist already: then
    out/hypotheses.jsonl has no lines, and the stage evaluate leaves the ensemble out.
    """
    if len(seeds) == 1:
        write_translations(None, [], out)
        return
    tokenizer = load_tokenizer(languages[0], tokenize, truecasers / "source.tsv")
    sentences = [tokenizer.words(line) for line in read_lines(test / "source.txt")]
    members = [trained / str(seed) / "model" for seed in seeds]
    table = candidates / "candidates.npz"
    translator = load_words(members, vocabulary, table, settle(params, tuned))
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
        everything.train.seeds,
        *map(Path, sys.argv[1:]),
    )
