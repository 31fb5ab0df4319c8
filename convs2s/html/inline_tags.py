"""Inline tags in a translation: a segment's translation as HTML, in which each tag is written once."""

import html
import re
from collections.abc import Callable, Sequence

from convs2s.html.characters import WIDE, is_translatable
from convs2s.html.draft import MARK, Draft, TranslatedSentence
from convs2s.html.places import Place, Placer, count_words
from convs2s.html.segments import BREAK, Segment
from convs2s.text.sentences import WITHOUT_SPACES, write_space

SPACES = " \u00a0\u3000"
"""White space that stays in the element that it was in: a button, for example, does not show it."""
CHINESE_OR_JAPANESE = re.compile("[\u2e80-\u9fff\uff00-\uffef\U00020000-\U0003ffff]")
"""Letters and punctuation of scripts without spaces between sentences."""
NEARBY = 10
"""Characters beside white space that say whether it is in a text of such a script."""


def write_segment(
    segment: Segment,
    sentences: Sequence[TranslatedSentence],
    language: str,
    on_emptied: Callable[[int], object] | None = None,
) -> str:
    """Return the HTML of a segment's translation; what is between its sentences is copied.

    Args:
        language: of the translations; it decides whether there are spaces between them.
        on_emptied: is called with the number of elements that had a word and have none in the translation.
    """
    draft = Draft(segment)
    position = 0
    for number, sentence in enumerate(sentences):
        between = segment.text[position : sentence.start]
        if number > 0 and not between.strip() and BREAK not in between:
            nearby = segment.text[max(0, position - NEARBY) : sentence.start + NEARBY]
            # Without a space in a script that has some, a text goes on, as in "known.[3] Others".
            goes_on = not between and not WIDE.match(segment.text[position - 1])
            # One in a script that needs none is there on purpose.
            is_kept = language in WITHOUT_SPACES and CHINESE_OR_JAPANESE.search(nearby)
            draft.write_space(between if goes_on or is_kept else write_space(between, language))
        else:
            draft.copy(position, sentence.start)
        draft.add(sentence)
        position = sentence.stop
    draft.copy(position, len(segment.text))
    places = Placer(segment, draft).place()
    if on_emptied:
        on_emptied(count_emptied(segment, draft, places))
    return write_tags(segment, draft, places)


def count_emptied(segment: Segment, draft: Draft, places: Sequence[Place]) -> int:
    """Return the number of elements that had a word and have none now."""
    filled = count_words(draft)
    return sum(
        filled[place.start] == filled[place.stop]
        and is_translatable(segment.text[inline.start : inline.stop])
        for inline, place in zip(segment.inlines[1:], places[1:], strict=True)
        if inline.closing
    )


def write_tags(segment: Segment, draft: Draft, places: Sequence[Place]) -> str:
    """Return the HTML of a draft with the segment's tags at their places."""
    children: list[list[int]] = [[] for _ in segment.inlines]
    for number in sorted(range(1, len(places)), key=lambda number: (*places[number], number)):
        children[segment.inlines[number].parent].append(number)
    marks = {unit.owner: unit for unit in draft.units if segment.inlines[unit.owner].is_mark}
    written = list[str]()
    position = 0

    text = draft.join()

    def write_text(end: int) -> None:
        nonlocal position
        if end > position:
            written.append(escape(text[position:end]))
            position = end

    def find_gap(unit: int, inside: Place) -> int:
        """Return where a gap is in the text: before a unit, or at the end of a place after its last unit."""
        if unit == inside.stop and unit > inside.start:
            return draft.units[unit - 1].stop
        return draft.units[unit].start if unit < len(draft.units) else position

    opened = [(0, iter(children[0]))]
    while opened:
        number, rest = opened[-1]
        child = next(rest, None)
        if child is None:
            opened.pop()
            place = places[number]
            if place.stop > place.start and number:
                end = draft.units[place.stop - 1].stop
                inline = segment.inlines[number]
                if inline.start < inline.stop and segment.text[inline.stop - 1] in SPACES:
                    end += end < len(text) and text[end] in SPACES
                write_text(end)
            written.append(segment.inlines[number].closing)
            continue
        inline = segment.inlines[child]
        if child in marks:
            write_text(marks[child].start)
            written.append(inline.opening)
            position = marks[child].stop
            continue
        gap = find_gap(places[child].start, places[number])
        if inline.closing and inline.start < inline.stop and segment.text[inline.start] in SPACES:
            gap = position + len(text[position:gap].rstrip(SPACES))
        if inline.is_space:  # it is the space
            write_text(position + len(text[position:gap].rstrip()))
            position = max(position, gap)
        write_text(gap)
        # What the translation has lost had spaces, probably.
        written.append(f" {inline.opening} " if inline.is_mark else inline.opening)
        opened.append((child, iter(children[child])))
    write_text(len(text))
    return "".join(written)


def escape(text: str) -> str:
    """Return text as HTML, without surplus marks."""
    return html.escape(MARK.sub("", text), quote=False)
