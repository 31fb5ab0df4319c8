"""The places of inline elements in a translation: each goes around the words that its words have become.

Attention says which word comes from which, and is often wrong (docs/translate.md). So an element does not go
around all words that come from it, but around the stretch in which the most do and the fewest do not: one
mistake at the other end of the sentence changes nothing. Whatever the attention is, each element has one
place, which is in its parent's.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from convs2s.html.draft import Draft
from convs2s.html.segments import Inline, Segment

LONGEST_WORD = 50
"""Characters between a place and an element in the same word, at most: it keeps the time linear."""
FARTHEST = 8
"""Words to an element that has lost its own, at most, from which it may take one."""


class Place(NamedTuple):
    """Where an inline element goes: around units[start:stop]; if there are none, before units[start]."""

    start: int
    stop: int


def count_words(draft: Draft) -> list[int]:
    """Return, for each place between the units of a draft, the number of words before it."""
    text = draft.join()
    words = (any(map(str.isalpha, text[unit.start : unit.stop])) for unit in draft.units)
    return list(itertools.accumulate(words, initial=0))


class Placer:
    """Finds the places of a segment's inline elements in a draft, parents first."""

    def __init__(self, segment: Segment, draft: Draft) -> None:
        self.text = segment.text
        self.inlines = segment.inlines
        self.words = count_words(draft)
        self.sentences = [*draft.sentences, (len(draft.segment.text), len(draft.units))]
        self.units = draft.units
        self.origins = sorted(draft.origins)
        self.places = [Place(0, len(draft.units))] * len(segment.inlines)
        self.units_of: list[list[int]] = [[] for _ in segment.inlines]
        """For each inline, the units that come from it and from what is in it."""
        self.marks_of: list[list[int]] = [[] for _ in segment.inlines]
        """For each inline, the units that are objects and breaks in it."""
        for i, unit in enumerate(draft.units):
            number = unit.owner
            while number >= 0:
                self.units_of[number].append(i)
                if self.inlines[unit.owner].is_mark:
                    self.marks_of[number].append(i)
                number = self.inlines[number].parent

    def place(self) -> list[Place]:
        """Return the place of each inline, by number; each is in that of its parent, beside its siblings'."""
        children = defaultdict[int, list[int]](list)
        for number, inline in enumerate(self.inlines[1:], start=1):
            children[inline.parent].append(number)
        for parent, numbers in sorted(children.items()):
            self._place_children(parent, numbers)
        return self.places

    def _place_children(self, parent: int, children: Sequence[int]) -> None:
        first, last = self.places[parent]
        branches = [0] * (last - first)  # for each unit in the parent's place, the child that it comes from
        for child in children:
            for unit in self.units_of[child]:
                if first <= unit < last:
                    branches[unit - first] = child
        for child in children:
            if marks := self.marks_of[child]:  # what is between its objects cannot be elsewhere
                begin = marks[0] - first
                end = marks[-1] - first + 1
                branches[begin:end] = [child] * (end - begin)
        units = defaultdict[int, list[int]](list)
        for i, branch in enumerate(branches):
            units[branch].append(i)
        foreign = list(itertools.accumulate(map(bool, branches), initial=0))
        holders = [0] * len(branches)  # for each unit, the child whose place it is in
        for child in children:
            if units[child]:
                marks = [mark - first for mark in self.marks_of[child]]
                start, stop = find_stretch(units[child], marks, foreign)
                self.places[child] = Place(first + start, first + stop)
                holders[start:stop] = [child] * (stop - start)
        jumps = dict[int, int]()
        shared = SharedWords(first, last, holders)
        for child in children:
            if not units[child]:
                self.places[child] = self._place_unlinked(child, branches, shared, jumps)

    def _place_unlinked(
        self, child: int, branches: Sequence[int], shared: "SharedWords", jumps: dict[int, int]
    ) -> Place:
        """Return the place of an element that no unit comes from; if it has text, it takes a word nearby.

        Args:
            jumps: as for `_leave_siblings`.
        """
        inline = self.inlines[child]
        first, last = self.places[inline.parent]
        holders = shared.holders
        gaps = [self._leave_siblings(child, gap, holders, jumps) for gap in self._find_gaps(child)]
        if inline.closing and inline.start < inline.stop:
            own_word = self._find_own_word(inline)
            begin, end = self._limit_to_sentences(inline, first, last)
            near = [
                unit
                for distance in range(FARTHEST)
                for gap in gaps
                for unit in (gap + distance, gap - 1 - distance)
                if first <= unit < last and not holders[unit - first]
                if self._is_word(unit) or unit in own_word
            ]
            own = [unit for unit in near if begin <= unit < end]
            beside = (
                unit
                for gap in gaps
                for unit in (gap - 1, gap)
                if begin <= unit < end and self._release(holders[unit - first], unit)
            )
            # Best one of its sentence that comes from no sibling.
            words = itertools.chain((unit for unit in own if not branches[unit - first]), own, beside, near)
            word = next(words, None)
            if word is None:
                word = self._find_farther(gaps[0], begin, end, shared)
            if word is not None:
                holders[word - first] = child
                return Place(word, word + 1)
        return Place(gaps[0], gaps[0])

    def _find_farther(self, gap: int, begin: int, end: int, shared: "SharedWords") -> int | None:
        """Return the word next to a gap, of units[begin:end], that is no element's or that one can spare.

        What can spare it loses it.
        """
        after = shared.find_after(gap)
        while after < end and not self._is_spare(after, shared):
            after = shared.find_after(gap)
        before = shared.find_before(gap)
        while before >= begin and not self._is_spare(before, shared):
            before = shared.find_before(gap)
        if after >= end and before < begin:
            return None
        is_after = after < end and (before < begin or after - gap < gap - before)
        word = after if is_after else before
        holder = shared.holders[word - shared.first]
        if not holder:
            return word
        start, stop = self.places[holder]
        nearest_first = (start, stop - 1) if is_after else (stop - 1, start)
        return next(unit for unit in nearest_first if self._release(holder, unit))

    def _is_spare(self, unit: int, shared: "SharedWords") -> bool:
        """Return whether a unit is a word that no element has, or one of an element that can spare one.

        If not, it is never asked for again, as elements only become shorter.
        """
        holder = shared.holders[unit - shared.first]
        if not holder:
            if not self._is_word(unit):
                shared.drop(unit)
            return self._is_word(unit)
        start, stop = self.places[holder]
        can_spare = self._can_release(holder, start) or self._can_release(holder, stop - 1)
        if not can_spare:
            shared.drop(unit)
        return can_spare

    def _limit_to_sentences(self, inline: Inline, first: int, last: int) -> tuple[int, int]:
        """Return the first unit of the sentences that an element was in, and the one after the last."""
        begin = bisect_right(self.sentences, inline.start, key=lambda sentence: sentence[0]) - 1
        end = bisect_left(self.sentences, inline.stop, key=lambda sentence: sentence[0])
        return max(first, self.sentences[begin][1]), min(last, self.sentences[end][1])

    def _is_word(self, unit: int) -> bool:
        return self.words[unit] < self.words[unit + 1]

    def _release(self, holder: int, unit: int) -> bool:
        """Take a word from an end of an element's place, if the next one is the element's, too.

        Returns whether it was taken.
        """
        can_release = self._can_release(holder, unit)
        if can_release:
            start, stop = self.places[holder]
            self.places[holder] = Place(start + 1, stop) if unit == start else Place(start, stop - 1)
        return can_release

    def _can_release(self, holder: int, unit: int) -> bool:
        """Return whether a word is at an end of an element's place, and the next is the element's, too."""
        start, stop = self.places[holder]
        if not holder or stop - start == 1 or unit not in (start, stop - 1):
            return False
        neighbor = unit + 1 if unit == start else unit - 1
        return all(self.units[own].owner == holder and self._is_word(own) for own in (unit, neighbor))

    def _find_gaps(self, child: int) -> list[int]:
        """Return gaps where an element may go, best first, each in its parent's place."""
        inline = self.inlines[child]
        parent = self.inlines[inline.parent]
        first, last = self.places[inline.parent]
        following = bisect_left(self.origins, (inline.start,))
        own = self._find_own_word(inline)
        after = [unit for _, unit in self.origins[following : following + 1]]
        before = [unit + 1 for _, unit in self.origins[max(0, following - 1) : following]]
        gaps = [unit for unit in own + after if unit < last] + [unit for unit in before if unit > first]
        gaps = [gap for gap in gaps if first <= gap <= last]
        if inline.start == parent.start:
            gaps.insert(0, first)
        if inline.stop == parent.stop:
            gaps.insert(0, last)
        is_early = inline.start - parent.start < parent.stop - inline.stop
        return gaps or [first if is_early else last]

    def _find_own_word(self, inline: Inline) -> list[int]:
        """Return the unit of the word that an element is in, if that begins and has its origin before it."""
        following = bisect_left(self.origins, (inline.start,))
        nearest = self.origins[max(0, following - 1) : following]
        return [unit for place, unit in nearest if self._is_in_word(place, inline)]

    def _is_in_word(self, place: int, inline: Inline) -> bool:
        """Return whether an element has text that goes on a word in which this place is."""
        word = self.text[place : inline.start + 1] if inline.start - place <= LONGEST_WORD else ""
        return bool(inline.closing) and inline.start < inline.stop and word.isalnum()

    def _leave_siblings(self, child: int, gap: int, holders: Sequence[int], jumps: dict[int, int]) -> int:
        """Return the nearest gap outside of siblings, and after them if they come before the child.

        Args:
            jumps: gaps by gaps before them between which are siblings that come before the child; gains some.
                As children are placed in their order, they come before later ones, too.
        """
        first, last = self.places[self.inlines[child].parent]
        passed = list[int]()
        while first <= gap < last and (holder := holders[gap - first]):
            if holder < child:
                passed.append(gap)
                gap = jumps.get(gap, self.places[holder].stop)
            elif gap > self.places[holder].start:
                gap = self.places[holder].start
            else:
                break
        jumps.update(dict.fromkeys(passed, gap))
        return gap


class SharedWords:
    """The units of a parent's place, of which those that no child can have are skipped.

    Attributes:
        first: the first unit.
        holders: for each unit, the child whose place it is in, or 0.
    """

    def __init__(self, first: int, last: int, holders: list[int]) -> None:
        self.first = first
        self.holders = holders
        # For each unit, one from which to look on; the unit itself as long as it may be had.
        self._after = list(range(last - first + 1))
        self._before = list(range(last - first + 1))  # shifted by 1: 0 is before the first unit

    def find_after(self, gap: int) -> int:
        """Return the first unit after a gap that may be had; the last one's successor if there is none."""
        return self.first + follow(self._after, gap - self.first)

    def find_before(self, gap: int) -> int:
        """Return the last unit before a gap that may be had; the first one's predecessor if there is none."""
        return self.first + follow(self._before, gap - self.first) - 1

    def drop(self, unit: int) -> None:
        """Skip a unit from now on."""
        i = unit - self.first
        self._after[i] = i + 1
        self._before[i + 1] = i


def follow(links: list[int], i: int) -> int:
    """Return the end of a chain of links, and shorten the chain, so that many calls take linear time."""
    while links[i] != i:
        links[i] = links[links[i]]
        i = links[i]
    return i


def find_stretch(units: Sequence[int], marks: Sequence[int], foreign: Sequence[int]) -> Place:
    """Return the stretch of a text with the most units of an element and the fewest of its parent's own.

    Each of the element's counts 1, each of its parent's -1. Of equal stretches, the longest counts, then the
    first.

    Args:
        units: of the element.
        marks: those of its units that must be in the stretch.
        foreign: for each place in the text, the number of units before it that are the element's or its
            siblings'; the siblings' cannot be in the stretch.
    """
    best = (0, 0)
    place = Place(0, 0)
    for run in split_runs(units, foreign):
        if marks and not run[0] <= marks[0] <= run[-1]:
            continue
        last_begin = bisect_left(run, marks[0]) if marks else len(run) - 1
        first_end = bisect_left(run, marks[-1]) if marks else 0
        # The stretch from run[begin] to run[end] has the sum worths[end] - worths[begin] + 1.
        worths = [2 * i - unit for i, unit in enumerate(run)]
        begin = 0
        for end, unit in enumerate(run):
            if end <= last_begin and worths[end] < worths[begin]:
                begin = end
            found = worths[end] - worths[begin] + 1, unit - run[begin]
            if end >= first_end and (found > best or place.stop == 0):
                best = found
                place = Place(run[begin], unit + 1)
    return place


def split_runs(units: Sequence[int], foreign: Sequence[int]) -> Iterator[list[int]]:
    """Yield the units of an element in runs between which there is something foreign."""
    run = list[int]()
    for unit in units:
        if run and foreign[unit] > foreign[run[-1] + 1]:
            yield run
            run = []
        run.append(unit)
    yield run
