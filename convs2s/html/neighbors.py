"""Elements side by side that are texts of their own, such as the links of a menu.

A page's CSS shows them apart, and it is not read. So words, punctuation and the kinds of elements decide: two
texts are in `<a>Home</a><a>News</a>` and in `<a>Home</a> | <a>News</a>`, and one word in `<b>I</b>t`.
"""

import re
from collections.abc import Iterable, Sequence, Set

from convs2s.html.characters import WIDE, is_translatable
from convs2s.html.elements import IN_WORDS, RAISED, REVISIONS
from convs2s.html.nesting import Item

WORD_AT_END = re.compile(r"(?<!\w)\w*\Z")
WORD_AT_START = re.compile(r"\w*")
PARTING = {".", "!", "?", "…", ":", ";"}
"""Punctuation that nothing follows without a space."""
WORD_AND_END = re.compile(r"[^\W\d_]{2}\W")
"""The end of a word of several letters, and the character behind it."""
SIGNS_BESIDE = re.compile(r"""(?s:.?)\w\n[(“„"«$€£]\w|\S[)\]”"»%]\n[(“„"«$€£]?\w""")
"""Two texts that meet at a line end, of which one has a bracket, a quotation mark or the like there."""
SHORTEST_WORD = 4
"""Letters of a word that has no number as a part."""
SEPARATOR = re.compile(r"\s*[|¦·•∙›»>→]\s*")
"""What pages write between links that are no parts of a sentence, as in `Home | News`."""
ARROWS = "›»>→"
"""Separators that may be in a sentence, too."""
FIRST_WORD = re.compile(rf"[^\w|¦·•∙{ARROWS}]*(\w*)")
"""The first word of a text, unless a separator is before it."""
CONTROLS = {"button", "label"}
"""Elements that are parts of a form, not of a sentence, if they stand side by side."""


def part_controls(items: Iterable[Item]) -> list[Item]:
    """Return items with a break between buttons or labels side by side, and for what separates links.

    Between two labels may be an object, such as the `<input>` of the second one.
    """
    parted = list[Item]()
    stretch = list[Item]()
    for item in items:
        stretch.append(item)
        if item.kind == "break":
            parted += part_stretch(stretch)
            stretch = []
    return parted + part_stretch(stretch)


def part_stretch(items: Sequence[Item]) -> list[Item]:
    """Return items, of which only the last may be a break, as `part_controls` does."""
    is_menu, is_path = read_links(items)
    parted = list[Item]()
    closed = set[str]()  # names of the elements that have ended since the last word
    place = 0  # behind their end tags, or that of what separates
    separator = ""
    has_object = False
    for item in items:
        if item.kind == "close":
            separator = separator if closed else ""
            has_object = has_object and bool(closed)
            place = place if separator else len(parted) + 1
            closed.add(item.name)
        elif item.kind == "text" and SEPARATOR.fullmatch(item.text) and not separator:
            separator = item.text.strip()
            place = len(parted)
        elif item.name in RAISED or item.text.strip():
            closed = set()  # such as before a note to the last word
        elif item.kind == "object":
            has_object = True
        elif item.kind == "open" and closed:
            is_control = item.name in CONTROLS and not CONTROLS.isdisjoint(closed)
            is_link = item.name == "a" and "a" in closed and not has_object
            if not separator:
                is_link = is_link and is_menu
            elif separator in ARROWS:
                is_link = is_link and is_path
            if is_control or is_link:
                if place < len(parted) and parted[place].kind == "text":
                    parted[place] = Item("break", parted[place].raw)
                else:
                    parted.insert(place, Item("break", ""))
                closed = set()
        parted.append(item)
    return parted


def read_links(items: Iterable[Item]) -> tuple[bool, bool]:
    """Return whether links side by side are texts of their own, and whether those with arrows are.

    The former are if they have all words and are no sentence, such as `<a>The dog</a> <a>is big.</a>`. The
    latter are unless other words make a sentence of them, as in `Use <a>File</a> > <a>Open</a> to open it`.
    """
    texts = [list[str]()]  # by turns outside of links and in them
    for item in items:
        is_in_link = len(texts) % 2 == 0
        if item.name != "a":
            texts[-1].append(item.text)
        elif item.kind == "open":
            texts += [[], []] if is_in_link else [[]]
        elif len(texts) == 1:  # the link has begun before these items
            texts = [[], *texts, []]
        elif is_in_link:
            texts.append([])
    joined = ["".join(text).strip() for text in texts]
    outside = joined[::2]
    links = list(filter(is_translatable, joined[1::2]))
    if any(map(is_translatable, outside)):
        before = outside[0]
        may_begin = not is_translatable(before) or before.endswith((":", "：", *ARROWS))
        return False, may_begin and not begins_small(outside[-1])
    text = "".join(joined)
    ends = text.endswith((".", "。")) and WORD_AND_END.fullmatch(text[-3:]) is not None  # unlike "U.S."
    if len(links) < 2:
        return True, True
    are_single_words = not any(" " in link for link in links)  # of which case says nothing
    goes_on = links[0][0].isupper() and any(map(begins_small, links)) and not are_single_words
    is_sentence = ends or goes_on
    return not is_sentence, True


def begins_small(text: str) -> bool:
    """Return whether the first word of a text, if no separator is before it, is in lower case."""
    return FIRST_WORD.match(text)[1].islower()  # type: ignore[index]  # it always matches


def part_neighbors(items: Iterable[Item]) -> list[Item]:
    """Return items with a break, which has no tag, between elements that a page parts without a space.

    Such are `<a>Home</a><a>News</a>` and `<span>My brother</span><span>My sister</span>`: the page's CSS
    parts them, which is not read. `<b>I</b>t` is a word.
    """
    parted = list[Item]()
    before = ""  # the text before the tags
    has_words = False  # since the last break
    closed = set[str]()
    opened = set[str]()
    place = 0  # of the break
    is_in_link = False
    for item in items:
        if item.kind == "text" and item.text:
            if is_parted(before, item.text, closed, opened, has_words) or (
                closed and opened and has_signs_beside(before, item.text, closed | opened)
            ):
                parted.insert(place, Item("break", ""))
                has_words = False
            before = item.text
            has_words = has_words or is_translatable(item.text)
            closed = set()
            opened = set()
        elif item.kind == "open":
            if not opened and not closed:
                place = len(parted)
            opened.add(item.name)
            if item.name == "a" and is_in_link:  # a link ends the one that it is in
                closed.add("a")
            is_in_link = is_in_link or item.name == "a"
        elif item.kind == "close":
            place = len(parted) + 1
            closed.add(item.name)
            is_in_link = is_in_link and item.name != "a"
        elif item.kind != "point" or item.raw[:4].lower() == "<wbr":
            before = ""
            has_words = has_words and item.kind != "break"
        parted.append(item)
    return parted


def is_parted(before: str, after: str, closed: Set[str], opened: Set[str], has_words: bool) -> bool:
    """Return whether two texts are not parts of a word or of a sentence, though no space is between them.

    Args:
        closed, opened: names of the elements that end and begin between them.
        has_words: whether words are before them, or in the first one.
    """
    names = closed | opened
    last_word = WORD_AT_END.search(before)[0]  # type: ignore[index]  # it always matches
    first_word = WORD_AT_START.match(after)[0]  # type: ignore[index]  # it always matches
    is_after_end = before[-1:] in PARTING  # if so, the last word is empty
    if not names or not first_word or not (last_word or is_after_end):
        return False
    are_controls = "button" in names
    are_links = "a" in closed and "a" in opened
    if are_controls or are_links:
        return True

    has_raised = not RAISED.isdisjoint(names)
    is_counted = last_word.isdecimal() and first_word.islower() and has_words  # as in I have <b>3</b>dogs
    may_be_one_word = names <= IN_WORDS or has_raised or is_counted
    if is_number_beside_word(last_word, first_word) and not may_be_one_word:
        return True
    has_single_character = len(last_word) == 1 or len(first_word) == 1
    is_part_of_word = not is_after_end and (has_single_character or has_raised)
    is_without_spaces = WIDE.match(first_word) or WIDE.match(before[-1])
    if is_part_of_word or is_without_spaces:
        return False
    return begins_text(before, last_word, first_word, closed, opened)


def begins_text(before: str, last_word: str, first_word: str, closed: Set[str], opened: Set[str]) -> bool:
    """Return whether a word begins a text, by its first letter, what is before it, and the elements.

    Args:
        last_word: at the end of the text before; empty if punctuation of `PARTING` is there.
        first_word: the word.
        closed, opened: as for `is_parted`.
    """
    names = closed | opened
    may_be_in_word = names <= IN_WORDS
    is_capitalized = first_word[0].isupper() and not last_word.isupper()
    if not last_word and WORD_AND_END.fullmatch(before[-3:]):  # unlike in U.S.
        may_be_name = before[-1] == "." or may_be_in_word or not first_word.isalpha()  # such as example.org
        if is_capitalized or not may_be_name:
            return True
    if closed and opened:
        return is_capitalized or not may_be_in_word or names == REVISIONS
    # Text beside an element, such as <a>A title<span>Its source</span></a>; but YouTube may have a tag in it.
    may_be_name_with_tag = last_word and " " not in before and "a" not in names
    return is_capitalized and not may_be_in_word and not may_be_name_with_tag


def has_signs_beside(before: str, after: str, names: Set[str]) -> bool:
    """Return whether punctuation says that two texts are not parts of a word, such as `Price` and `$12`.

    Args:
        names: of the elements that end and begin between them.
    """
    is_inline = names <= IN_WORDS or not RAISED.isdisjoint(names)
    return not is_inline and SIGNS_BESIDE.fullmatch(f"{before[-2:]}\n{after[:2]}") is not None


def is_number_beside_word(left: str, right: str) -> bool:
    """Return whether one is a number and the other a word, too long for a unit or for a name such as CO2."""
    word = left if right.isdecimal() else right
    return left.isdecimal() != right.isdecimal() and len(word) >= SHORTEST_WORD and word.isalpha()
