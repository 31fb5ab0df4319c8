"""Stage truecase: raw training pairs -> the case that each word has in mid-sentence."""

from collections import Counter
from pathlib import Path

from convs2s.base.files import SIDES, atomic_path, read_folder
from convs2s.config.section import Languages, path_or_none
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.train import StartFrom
from convs2s.ids.vocabulary import most_frequent, write_vocabulary
from convs2s.text.words.pairs import count_cases
from convs2s.text.words.truecasing import copy_truecasers


def run(params: TokenizeParams, languages: Languages, start_from: StartFrom, raw: Path, out: Path) -> None:
    """Read raw/{source,target}.txt; write out/{source,target}.tsv, empty if `params.truecase` is off.

    A training that starts from a model takes its truecasers.
    """
    start = path_or_none(start_from)
    if params.truecase and start:
        copy_truecasers(start, out)
        return
    nothing = Counter[str](), Counter[str]()
    counts = count_cases(read_folder(raw), languages, params) if params.truecase else nothing
    with atomic_path(out) as temporary:
        temporary.mkdir()
        for side, words in zip(SIDES, counts, strict=True):
            write_vocabulary(temporary / f"{side}.tsv", most_frequent(words))
