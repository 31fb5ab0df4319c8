"""Pairs from the embedded grammar as a data source, with their true alignment."""

from collections.abc import Iterator
from pathlib import Path

from convs2s.english_german_grammar.corpus import CorpusPart, generate
from convs2s.text.corpus.files import atomic_path
from convs2s.text.sources.part import Part, RawPair, Split


def generated_part(pairs: int, seed: int, noise: float, split: Split) -> Part:
    """Open a generated corpus.

    Args:
        pairs: how many.
        seed: a different one gives a different corpus.
        noise: share of pairs spoiled on purpose.
        split: which part of the grammar's sentences: no training sentence is in another split, for any seed.
            Development pairs come from the same part as validation pairs.
    """
    asked = {"kind": "generated", "pairs": pairs, "seed": seed, "noise": noise, "part": split}
    return Part(f"generated {split}", aligned_pairs(pairs, seed, noise, split), asked, aligned=True)


def aligned_pairs(pairs: int, seed: int, noise: float, split: Split) -> Iterator[RawPair]:
    """Yield the generator's pairs with their links in fast_align's format: `0-0 1-2`."""
    for pair in generate(pairs, seed, noise, "valid" if split == "development" else split):
        yield RawPair(pair.source, pair.target, " ".join(f"{i}-{j}" for i, j in pair.alignment))


def write_corpus(folder: Path, pairs: int, seed: int, noise: float, part: CorpusPart) -> None:
    """Write source.txt, target.txt and alignment.txt ("0-0 1-2 ..."), one line per pair; all or nothing.

    Raises:
        ValueError: as `generate`.
    """
    made = generate(pairs, seed, noise, part)
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        with (
            (temporary / "source.txt").open("w", encoding="utf-8", newline="\n") as source,
            (temporary / "target.txt").open("w", encoding="utf-8", newline="\n") as target,
            (temporary / "alignment.txt").open("w", encoding="utf-8", newline="\n") as alignment,
        ):
            for pair in made:
                source.write(pair.source + "\n")
                target.write(pair.target + "\n")
                alignment.write(" ".join([f"{a}-{b}" for a, b in pair.alignment]) + "\n")
