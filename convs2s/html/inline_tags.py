"""Inline tags in a translation: a segment's translation as HTML, in which each tag is written once."""

import html
from collections.abc import Callable, Sequence

from convs2s.html.draft import MARK, Draft, TranslatedSentence
from convs2s.html.places import Place, Placer, count_words
from convs2s.html.segments import BREAK, WIDE, Segment, is_translatable
from convs2s.text.sentences import write_space


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
            # Without a space in a script that has some, a text goes on, as in "known.[3] Others".
            goes_on = not between and not WIDE.match(segment.text[sentence.start - 1])
            draft.write_space("" if goes_on else write_space(between, language))
        else:
            draft.copy(position, sentence.start)
        draft.add(sentence)
        position = sentence.stop
    draft.copy(position, len(segment.text))
    places = Placer(segment, draft).place()
    if on_emptied:
        on_emptied(count_emptied(segment, draft, places))
    return write_tags(segment, draft, places)


def count_emptied(segment: Segment, draft: "Draft", places: Sequence[Place]) -> int:
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
                write_text(draft.units[place.stop - 1].stop)
            written.append(segment.inlines[number].closing)
            continue
        inline = segment.inlines[child]
        if child in marks:
            write_text(marks[child].start)
            written.append(inline.opening)
            position = marks[child].stop
            continue
        gap = find_gap(places[child].start, places[number])
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
