"""Bilingual phrases: English tokens, German tokens and the links between them.

Tokens are those of the Moses tokenizer. Two marks join tokens in the text: `LEFT` before a token joins it to
the previous token, `RIGHT` after a token to the next.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

LEFT = "\x01"
RIGHT = "\x02"

Link = tuple[int, int]
Links = Sequence[Link]


class Phrase(NamedTuple):
    """A piece of a sentence in both languages; either side may be empty."""

    english: Sequence[str]
    german: Sequence[str]
    links: Links
    """Pairs of an English and a German token index, counted within the phrase."""
    slot: int = 2
    """Person and number for agreement: I, you, he, we, you all, they, and formal you (Sie), as 0 to 6."""
    pronoun: bool = False
    """True if German places the phrase right after the finite verb."""


def diagonal(count: int) -> tuple[Link, ...]:
    """Return the links (0, 0), (1, 1), ... of phrases in the same order."""
    return tuple((i, i) for i in range(count))


def phrase(english: str, german: str, links: str = "", slot: int = 2, pronoun: bool = False) -> Phrase:
    """Return a phrase from space-separated tokens; links are written as "0-0 1-1".

    Without `links`, tokens are linked one to one from the left, and surplus tokens of the longer side are
    linked to the last token of the shorter.
    """
    left, right = tuple(english.split()), tuple(german.split())
    if links:
        pairs = tuple((int(a), int(b)) for a, b in (link.split("-") for link in links.split()))
    else:
        longest = max(len(left), len(right)) if left and right else 0
        pairs = tuple((min(i, len(left) - 1), min(i, len(right) - 1)) for i in range(longest))
    return Phrase(left, right, pairs, slot, pronoun)


COMMA = phrase(LEFT + ",", LEFT + ",")
GERMAN_COMMA = phrase("", LEFT + ",")
PERIOD = phrase(LEFT + ".", LEFT + ".")
QUESTION_MARK = phrase(LEFT + "?", LEFT + "?")
EXCLAMATION_MARK = phrase(LEFT + "!", LEFT + "!")
NOTHING = phrase("", "")
CLOSING = frozenset(LEFT + mark for mark in ",.?!")
ONLY_COMMA = LEFT + ","


def weave(
    parts: Sequence[Phrase],
    english_order: Iterable[int],
    german_order: Iterable[int],
    cross: Iterable[tuple[int, int, int, int]] = (),
) -> Phrase:
    """Place parts in each language's own order.

    The comma that closes a German relative clause gives way to a following punctuation mark.

    Args:
        parts: the constituents; if an order lacks a part, it must be empty in that language.
        english_order: indices into `parts`.
        german_order: indices into `parts`.
        cross: links between parts: English part and token in it, German part and token in it.
    """
    english: list[str] = []
    german: list[str] = []
    left = [0] * len(parts)
    right = [0] * len(parts)
    for i in english_order:
        tokens = parts[i].english
        if tokens:
            left[i] = len(english)
            english += tokens
    for i in german_order:
        tokens = parts[i].german
        if tokens:
            if german and tokens[0] in CLOSING and german[-1] == ONLY_COMMA:
                german.pop()
            right[i] = len(german)
            german += tokens
    links: list[Link] = []
    for i, part in enumerate(parts):
        if part.links:
            x, y = left[i], right[i]
            links += [(a + x, b + y) for a, b in part.links] if x or y else part.links
    for i, a, j, b in cross:
        links.append((left[i] + a, right[j] + b))
    return Phrase(english, german, links)


def chain(*parts: Phrase) -> Phrase:
    """Concatenate parts in the same order in both languages."""
    english: list[str] = []
    german: list[str] = []
    links: list[Link] = []
    for part in parts:
        words = part.german
        if words and german and words[0] in CLOSING and german[-1] == ONLY_COMMA:
            german.pop()
        a, b = len(english), len(german)
        links += [(x + a, y + b) for x, y in part.links] if a or b else part.links
        english += part.english
        german += words
    return Phrase(english, german, links)


def text_of(tokens: Sequence[str]) -> str:
    """Return the raw text that the tokenizer splits into these tokens, with its first letter capitalized."""
    text = " ".join(tokens).replace(" " + LEFT, "").replace(RIGHT + " ", "")
    for i, letter in enumerate(text):  # the first letter may follow a quotation mark
        if letter.isalnum():
            return text[:i] + letter.upper() + text[i + 1 :]
    return text
