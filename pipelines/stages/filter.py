"""Stage filter: tokenized pairs -> the training pairs to keep, and the validation pairs."""

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from convs2s.base.files import atomic_path, read_folder, write_json
from convs2s.base.parallel import with_progress
from convs2s.config.section import Languages
from convs2s.config.text import AugmentParams, FilterParams
from convs2s.text.corpus.filter import (
    Pair,
    PairFilter,
    characters_per_character,
    repeats,
    require_validation,
    write_splits,
)
from convs2s.text.corpus.mistakes import find_mistakes, require_new
from convs2s.text.languages import find_faults


def run(
    params: FilterParams,
    augment: AugmentParams,
    languages: Languages,
    raw: Path,
    train: Path,
    augmented: Path,
    valid: Path,
    out: Path,
) -> None:
    """Read train/ and valid/; write the pairs kept to out/{train,valid}, and a report on those removed.

    The training pairs are those of train/, if `augment.keep`, then those of augmented/. Of the latter, the
    source gets `augment.tag` as its first word, which the rules do not count.

    Counts are in out/report.json, out/rules.csv and out/lengths.csv; a few of the pairs that each rule
    removed are in out/removed.json. Validation pairs are every `valid_every`-th kept pair, or, if that is
    null, all of valid/ unchanged.

    The report also has what looks like a mistake in the corpus, found in the raw text: raw/{train,valid,
    development,test}. It is all that depends on the test set.
    """
    held_out = {split: list(read_folder(raw / split)) for split in ("valid", "development", "test")}
    found = find_mistakes(read_folder(raw / "train"), held_out)
    found["warnings"] = [*find_faults(languages), *found["warnings"]]
    for warning in found["warnings"]:
        print(f"filter: warning: {warning}", file=sys.stderr)
    require_new(found["overlap"], params.max_overlap)
    folders = [train, augmented] if augment.keep else [augmented]
    repeated = repeats(chain(*map(read_folder, folders))) if params.drop_repeats else None
    in_characters = params.max_ratio is not None and params.ratio_of == "characters"
    usual = characters_per_character(chain(*map(read_folder, folders))) if in_characters else None
    rules = PairFilter(params.max_words, params.max_ratio, params.drop_empty, repeated, usual)

    def kept() -> Iterator[Pair]:
        if augment.keep:
            yield from rules.keep(read_folder(train))
        others = rules.kept
        for source, target in rules.keep(read_folder(augmented)):
            found["translated"] = rules.kept - others
            yield f"{augment.tag} {source}" if augment.tag else source, target

    with atomic_path(out) as temporary:
        temporary.mkdir()
        pairs = with_progress(kept(), "filter", "pairs")
        splits = write_splits(temporary, pairs, read_folder(valid), params.valid_every)
        rules.require_some(train)
        require_validation(splits, params.valid_every)
        write_json(temporary / "report.json", rules.report() | splits | found)
        write_json(temporary / "removed.json", rules.removed_rows())
        rules.rules_table().to_csv(temporary / "rules.csv", index=False, lineterminator="\n")
        rules.lengths_table().to_csv(temporary / "lengths.csv", index=False, lineterminator="\n")
