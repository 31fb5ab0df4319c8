"""Real sentence pairs for tests: some of the validation pairs in data/tatoeba-en-de."""

import functools
import random
from collections.abc import Sequence
from pathlib import Path

from convs2s.base.files import read_lines
from convs2s.config.params import Params

ROOT = Path(__file__).parent.parent
Pair = tuple[str, str]

NOISE = [
    ("", "Ohne Vorlage."),
    ("No translation.", ""),
    ("Yes.", "Ja " * 5 + "."),
    ("on and " * 90, "und so " * 90),
]
"""Pairs that the default filter removes: a side is empty, one is much longer, both are too long."""


@functools.cache
def shuffled() -> list[Pair]:
    """Return all pairs, in random order, because the corpus is sorted by length."""
    lines = read_lines(ROOT / "data" / "tatoeba-en-de" / "valid.tsv.xz")
    pairs = [(source, target) for source, target in (line.split("\t") for line in lines)]
    random.Random(1).shuffle(pairs)
    return pairs


def pairs(count: int, start: int = 0) -> list[Pair]:
    """Return `count` pairs, always the same ones; from another start, others."""
    return shuffled()[start : start + count]


def with_pairs(params: Params, folder: Path, train: Sequence[Pair], test: Sequence[Pair]) -> Params:
    """Write pairs to files in a folder; return the parameters with these as the whole corpus.

    Every tenth training pair is used for validation.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for split, some in (("train", train), ("test", test)):
        (folder / f"{split}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in some), encoding="utf-8")
    content = params.model_dump()
    for split in ("train", "test"):
        source = {"kind": "files", "source": None, "target": None, "tsv": f"{split}.tsv", "columns": [0, 1]}
        content["download"][split] = {"sources": [source]}
    content["download"] |= {"folder": str(folder), "valid": {"sources": []}}
    content["filter"]["valid_every"] = 10
    return Params.model_validate(content)
