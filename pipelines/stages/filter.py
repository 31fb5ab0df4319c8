"""Stage filter: tokenized pairs -> the training pairs to keep, and the validation pairs."""

import sys
from collections.abc import Iterable, Iterator, Sequence
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
from convs2s.text.corpus.suspects import describe_suspects, find_suspects
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
    development,test}. Only this part of the output depends on the test set. Under `suspects`, it counts by
    kind the pairs that are probably bad translations; `first` is the line of the first one.
    """
    held_out = {split: list(read_folder(raw / split)) for split in ("valid", "development", "test")}
    mistakes = find_mistakes(read_folder(raw / "train"), held_out)
    suspects = find_suspects(read_folder(raw / "train"), languages)
    if params.drop_repeats:
        del suspects["repeats"]  # they are removed, and counted as such
    mistakes["warnings"] = [
        *find_faults(languages),
        *describe_suspects(suspects, languages),
        *mistakes["warnings"],
    ]
    for warning in mistakes["warnings"]:
        print(f"filter: warning: {warning}", file=sys.stderr)
    require_new(mistakes["overlap"], params.max_overlap)
    rules = choose_rules(params, [train, augmented] if augment.keep else [augmented])
    with atomic_path(out) as temporary:
        temporary.mkdir()
        own = rules.keep(read_folder(train)) if augment.keep else ()
        translated = TaggedPairs(rules.keep(read_folder(augmented)), augment.tag)
        pairs = with_progress(chain(own, translated), "filter", "pairs")
        splits = write_splits(temporary, pairs, read_folder(valid), params.valid_every)
        rules.require_some(train)
        require_validation(splits, params.valid_every)
        report = rules.report() | splits | mistakes
        report["suspects"] = {kind: vars(pairs) for kind, pairs in suspects.items() if pairs.pairs}
        if translated.count:
            report["translated"] = translated.count
        write_json(temporary / "report.json", report)
        write_json(temporary / "removed.json", rules.removed_rows())
        rules.rules_table().to_csv(temporary / "rules.csv", index=False, lineterminator="\n")
        rules.lengths_table().to_csv(temporary / "lengths.csv", index=False, lineterminator="\n")


def choose_rules(params: FilterParams, folders: Sequence[Path]) -> PairFilter:
    """Return the rules for the pairs of these folders, which two of the rules read in advance."""
    repeated = None
    if params.drop_repeats:
        repeated = repeats(chain(*map(read_folder, folders)))
    corpus_ratio = None
    if params.max_ratio is not None and params.ratio_of == "characters":
        corpus_ratio = characters_per_character(chain(*map(read_folder, folders)))
    return PairFilter(params.max_words, params.max_ratio, params.drop_empty, repeated, corpus_ratio)


class TaggedPairs:
    """Pairs that models translated: yields them with a tag as the source's first word, and counts them."""

    def __init__(self, pairs: Iterable[Pair], tag: str | None) -> None:
        self.pairs = pairs
        self.tag = tag
        self.count = 0

    def __iter__(self) -> Iterator[Pair]:
        for source, target in self.pairs:
            self.count += 1
            yield f"{self.tag} {source}" if self.tag else source, target
