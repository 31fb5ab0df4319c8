"""As many pairs of English and German as a benchmark needs, made from those in data/tatoeba-en-de."""

import random
from collections.abc import Iterator
from pathlib import Path

from convs2s.text.corpus.files import read_lines

TRAIN = Path(__file__).resolve().parent.parent / "data" / "tatoeba-en-de" / "train.tsv.xz"


def sample(pairs: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of up to three sentences drawn at random, so that hardly any two are equal.

    One in a hundred has two sentences on one side only, for the filters to remove.
    """
    dice = random.Random(seed)
    corpus = [line.split("\t") for line in read_lines(TRAIN)]
    for _ in range(pairs):
        drawn = dice.choices(corpus, k=dice.randint(1, 3))
        source, target = (" ".join(side) for side in zip(*drawn, strict=True))
        yield (source, target) if dice.random() > 0.01 else (source, drawn[0][1])
