"""As many pairs of English and German as a benchmark needs, made from those in data/tatoeba-en-de."""

import random
from collections.abc import Iterator
from pathlib import Path

from convs2s.base.files import read_lines

TRAIN = Path(__file__).resolve().parent.parent / "data" / "tatoeba-en-de" / "train.tsv.xz"
MEAN_SENTENCES = 3.2
NAMES = 10**7
EXPONENT = 1.2  # the frequency of the names is proportional to 1 / rank^EXPONENT
SYLLABLES = [consonant + vowel for consonant in "bdfghjklmnprstvwz" for vowel in "aeiou"]


def sample(pairs: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of random sentences with the lengths and vocabulary of WMT: hardly any two are equal.

    There are 26 words on average, exponentially distributed. In each sentence that is drawn, a word on either
    side becomes a name, with Zipf-distributed frequencies, so that 4 million pairs have a million words. One
    pair in a hundred has two sentences on one side only, for the filters to remove.
    """
    dice = random.Random(seed)
    corpus = [[side.split(" ") for side in line.split("\t")] for line in read_lines(TRAIN)]
    for _ in range(pairs):
        drawn = dice.choices(corpus, k=1 + int(dice.expovariate(1 / (MEAN_SENTENCES - 0.5))))
        sides: list[list[str]] = [[], []]
        for pair in drawn:
            name = spell(int(dice.paretovariate(EXPONENT - 1)) % NAMES)
            place = dice.random()
            for side, words in zip(sides, pair, strict=True):
                chosen = int(place * len(words))
                side += [*words[:chosen], name, *words[chosen + 1 :]]
        source, target = (" ".join(side) for side in sides)
        if dice.random() <= 0.01:
            target = f"{target} {target}"
        yield source, target


def spell(number: int) -> str:
    """Return a name for a number."""
    syllables: list[str] = []
    while number or not syllables:
        number, remainder = divmod(number, len(SYLLABLES))
        syllables.append(SYLLABLES[remainder])
    return "".join(syllables).capitalize()
