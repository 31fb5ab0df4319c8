"""Stage tokenize@SPLIT: raw pairs -> words separated by single spaces."""

from pathlib import Path

from convs2s.base.files import read_folder, write_folder
from convs2s.config.section import Languages
from convs2s.config.tokenize import TokenizeParams
from convs2s.text.words.pairs import tokenize_pairs


def run(params: TokenizeParams, languages: Languages, truecasers: Path, raw: Path, out: Path) -> None:
    """Read raw/{source,target}.txt; write the words to out/{source,target}.txt, line for line.

    If `params.truecase`, words are truecased with truecasers/{source,target}.tsv.
    """
    write_folder(out, tokenize_pairs(read_folder(raw), languages, params, truecasers))
