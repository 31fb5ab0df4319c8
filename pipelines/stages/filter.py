"""Stage filter: tokenized pairs -> the training pairs to keep, and the validation pairs."""

from pathlib import Path

from convs2s.config.filter import FilterParams
from convs2s.text.corpus.files import atomic_path, read_folder, write_json
from convs2s.text.corpus.filter import (
    PairFilter,
    characters_per_character,
    repeats,
    require_validation,
    write_splits,
)
from convs2s.text.corpus.parallel import with_progress


def run(params: FilterParams, train: Path, valid: Path, out: Path) -> None:
    """Read train/ and valid/; write the pairs kept to out/{train,valid}, and a report on those removed.

    Counts are in out/report.json, out/rules.csv and out/lengths.csv; a few of the pairs that each rule
    removed are in out/removed.json. Validation pairs are every `valid_every`-th kept pair, or, if that is
    null, all of valid/ unchanged.
    """
    repeated = repeats(read_folder(train)) if params.drop_repeats else None
    in_characters = params.max_ratio is not None and params.ratio_of == "characters"
    usual = characters_per_character(read_folder(train)) if in_characters else None
    rules = PairFilter(params.max_words, params.max_ratio, params.drop_empty, repeated, usual)
    pairs = with_progress(read_folder(train), "filter", "lines")
    with atomic_path(out) as temporary:
        temporary.mkdir()
        splits = write_splits(temporary, rules.keep(pairs), read_folder(valid), params.valid_every)
        rules.require_some(train)
        require_validation(splits, params.valid_every)
        write_json(temporary / "report.json", rules.report() | splits)
        write_json(temporary / "removed.json", rules.removed_rows())
        rules.rules_table().to_csv(temporary / "rules.csv", index=False, lineterminator="\n")
        rules.lengths_table().to_csv(temporary / "lengths.csv", index=False, lineterminator="\n")
