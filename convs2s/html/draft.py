"""The translation of a segment before its tags are in it: from which element each of its words comes."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from convs2s.html.segments import BREAK, Segment
from convs2s.text.words.tokenization import OBJECT

MARK = re.compile(f"[{OBJECT}{BREAK}]")
UNMARKED = re.compile(f"[^{OBJECT}{BREAK}]+")


class Word(NamedTuple):
    """A word of a translation.

    Attributes:
        start, stop: where it is in the text.
        origins: the places in the source of the words that it comes from; empty if that is not known.
    """

    start: int
    stop: int
    origins: Sequence[int]


class Traced(NamedTuple):
    """A translation whose words have their origins.

    Attributes:
        unknown_characters: number of the source's characters that the model never saw; objects do not count.
    """

    text: str
    words: Sequence[Word]
    unknown_characters: int = 0


class TranslatedSentence(NamedTuple):
    """A sentence of a segment: where it is in the segment's text, and its translation."""

    start: int
    stop: int
    translation: Traced


class Unit(NamedTuple):
    """A word of a segment's translation, or an object or a break in it.

    Attributes:
        start, stop: where it is in the text.
        owner: the number of the innermost element that it comes from; an object's or a break's own.
    """

    start: int
    stop: int
    owner: int


class Draft:
    """A segment's translation without its tags, as far as it is written.

    Attributes:
        units: in the order of the text.
        origins: pairs of a place in the segment and the index of a unit that comes from there; for the place
            where a sentence begins, also its first unit.
        sentences: for each, and each text between two, where it begins in the segment, and its first unit.
    """

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.units = list[Unit]()
        self.origins = list[tuple[int, int]]()
        self._marks = {
            inline.start: number for number, inline in enumerate(segment.inlines) if inline.is_mark
        }
        self.sentences = list[tuple[int, int]]()
        self._written = list[str]()
        self._length = 0

    def join(self) -> str:
        """Return the text, in which objects and breaks are marks."""
        return "".join(self._written)

    def write_space(self, space: str) -> None:
        """Add white space between sentences."""
        self._written.append(space)
        self._length += len(space)

    def copy(self, start: int, stop: int) -> None:
        """Add a part of the segment's text as it is."""
        text = self.segment.text[start:stop]
        # Here tags stay where they are, also within words.
        words = [Word(i, i + 1, [i]) for i, character in enumerate(text) if not character.isspace()]
        self.add(TranslatedSentence(start, stop, Traced(text, words)))

    def add(self, sentence: TranslatedSentence) -> None:
        """Add the translation of a sentence."""
        self.sentences.append((sentence.start, len(self.units)))
        text = sentence.translation.text
        owners = self.segment.owners[sentence.start : sentence.stop]
        characters = self.segment.text[sentence.start : sentence.stop]
        # A period that the source did not have is in the link that had all words, whatever is beside it.
        around = find_common_owner(
            self.segment,
            (owner for owner, character in zip(owners, characters, strict=True) if character.isalnum()),
        )
        units = list[tuple[Unit, Sequence[int]]]()
        for word in sentence.translation.words:
            votes = Counter(owners[origin] for origin in word.origins)
            owner = votes.most_common(1)[0][0] if votes else around
            # An object may be part of a word, such as of "3￼".
            for part in UNMARKED.finditer(text, word.start, word.stop):
                same = find_same(part[0], characters, word.origins)
                own = owners[same : same + len(part[0])] if same >= 0 else []
                if len({*own}) < 2:
                    units.append((Unit(*part.span(), owner), word.origins))
                    continue
                # Tags within a word that is the same stay where they are.
                cuts = [
                    0,
                    *(i for i, (left, right) in enumerate(pairwise(own), 1) if left != right),
                    len(own),
                ]
                for start, stop in pairwise(cuts):
                    unit = Unit(part.start() + start, part.start() + stop, own[start])
                    units.append((unit, [same + start]))
        places = [place for place in range(sentence.start, sentence.stop) if place in self._marks]
        for mark, place in zip(MARK.finditer(text), places, strict=False):  # surplus ones are not written
            units.append((Unit(*mark.span(), self._marks[place]), [place - sentence.start]))
        units.sort()
        if units:
            self.origins.append((sentence.start, len(self.units)))
        for unit, origins in units:
            self.origins += [(sentence.start + origin, len(self.units)) for origin in origins]
            self.units.append(unit._replace(start=self._length + unit.start, stop=self._length + unit.stop))
        self._written.append(text)
        self._length += len(text)


def find_same(word: str, source: str, origins: Iterable[int]) -> int:
    """Return where a word of a translation, as it is, has its first origin in the source; -1 for nowhere."""
    places = (source.find(word, max(0, i - len(word) + 1), i + len(word)) for i in origins)
    return next((place for place in places if place >= 0), -1)


def find_common_owner(segment: Segment, owners: Iterable[int]) -> int:
    """Return the number of the innermost element that all of these are, or are in; 0 for none."""
    numbers = {*owners} or {0}
    largest = [-number for number in numbers]
    heapify(largest)
    while len(largest) > 1:
        # A parent has a smaller number than its children.
        parent = segment.inlines[-heappop(largest)].parent
        if parent not in numbers:
            numbers.add(parent)
            heappush(largest, -parent)
    return -largest[0]
