"""Stage tokenize@SPLIT: raw pairs -> words separated by single spaces."""

import sys
from pathlib import Path

from convs2s.config.load import load_params
from convs2s.config.tokenize import TokenizeParams
from convs2s.text.corpus.pair_folder import read_folder, write_folder
from convs2s.text.words.pair_tokenization import tokenize_pairs


def run(params: TokenizeParams, languages: tuple[str, str], truecasers: Path, raw: Path, out: Path) -> None:
    """Read raw/{source,target}.txt; write the words to out/{source,target}.txt, one line for one line.

    If `params.truecase`, truecasers/{source,target}.tsv give words their case.
    """
    write_folder(out, tokenize_pairs(read_folder(raw), languages, params, truecasers))


if __name__ == "__main__":
    everything = load_params()
    download = everything.download
    run(everything.tokenize, (download.source_language, download.target_language), *map(Path, sys.argv[1:]))
