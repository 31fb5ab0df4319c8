"""Raw text -> words from which exactly the same text can be restored, in any language.

Words carry a mark where the text's spacing differs from the default of `Spacing`: U+FFED for no space, as in
OpenNMT's tokenizer, and a private-use character for each unusual space, so that no word contains whitespace.
The mark is on the side of the unusual spacing, and preferably on punctuation rather than on a word: "km/h" is
km, U+FFED / U+FFED, h. Control characters other than tabs, and spaces at either end of the text, are lost.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache

from convs2s.text.words.letters import with_letters_for_marks
from convs2s.text.words.spacing import ELIDING, Spacing

JOINED = "\uffed"
PRIVATE = 0xF0000
"""A space with code point n is marked by the character PRIVATE + n."""
ZERO_WIDTH_SPACE = 0x200B  # between the words of Khmer, Thai or Burmese
SPACES = [
    n for n in range(0x3001) if chr(n).isspace() and (chr(n) == "\t" or unicodedata.category(chr(n)) != "Cc")
] + [ZERO_WIDTH_SPACE]
MARK_OF_SPACE = {n: PRIVATE + n for n in SPACES}
SPACE_OF_MARK = {mark: n for n, mark in MARK_OF_SPACE.items()} | {ord(JOINED): None}
MARKS = JOINED + "".join(map(chr, MARK_OF_SPACE.values()))
MARKED = re.compile(f"([{MARKS}]*)(.*?)([{MARKS}]*)", re.DOTALL)
# Characters of the text that would be mistaken for marks or line ends; the first resembles U+FFED.
REPLACED = (
    {ord(JOINED): "\u25a0"}
    | dict.fromkeys(MARK_OF_SPACE.values(), " ")
    | dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - {*SPACES}, " ")
)
PLAIN_SPACES = dict.fromkeys(SPACES, " ")
IN_NUMBER = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d)")
# Apostrophes, the middle dot of Catalan and soft hyphens.
IN_WORD = re.compile(r"(?<=\w)['’ʼ·\u00ad](?=\w)")
APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")


def representable(text: str) -> str:
    """Return the text as it will be restored: stripped, with spaces for control characters except tabs."""
    text = text.translate(REPLACED).strip()
    return text if text.translate(PLAIN_SPACES).strip() else ""


def split_at_spaces(text: str) -> list[str]:
    """Split at single spaces; each additional or unusual space becomes a mark within a word."""
    further = re.sub(r"(?<= ) ", chr(MARK_OF_SPACE[ord(" ")]), representable(text))
    single = further.replace(" ", "\n").translate(MARK_OF_SPACE)
    return single.split("\n") if single else []


def join_by_spaces(words: list[str]) -> str:
    """Return the text that `split_at_spaces` split into these words."""
    return " ".join(words).translate(SPACE_OF_MARK)


def split_by_rules(text: str, language: str, tokenize: Callable[[str], list[str]]) -> list[str]:
    """Return the words that a tokenizer finds, cut from the text unchanged, and marked.

    Args:
        text: any text, even without words.
        language: ISO 639 code.
        tokenize: inserts spaces, and changes nothing else.
    """
    text = representable(text)
    shadow = shadowed(text, language)
    words = tokenize(shadow)
    if "".join(words) != "".join(shadow.split()):  # the rules changed characters: ignore them
        words = shadow.split()
    cuts = list(cut(text, words))
    return marked(cuts, text[sum(len(gap) + len(word) for gap, word in cuts) :], language)


def join_by_rules(words: list[str], language: str) -> str:
    """Return the text that `split_by_rules` split into these words."""
    spacing, text, after = Spacing(language), list[str](), ""
    for word in words:
        found = MARKED.fullmatch(word)
        assert found is not None  # the pattern matches any string
        gap = spacing.before(found[2])
        text += [after + found[1] or gap, found[2]]
        after = found[3]
    return "".join([*text, after]).translate(SPACE_OF_MARK).strip()


def shadowed(text: str, language: str) -> str:
    """Return a text of the same length that Moses' rules split in better places.

    The rules mistake a typographic apostrophe for a quotation mark and, outside English, French and Italian,
    a plain one as well. They treat a no-break space as a space, although in a number it groups digits. And
    they treat many combining marks, and letters newer than their tables, as punctuation.
    """
    original, text = text, with_letters_for_marks(text)
    if language == "en" or language in ELIDING:
        text = APOSTROPHE.sub("'", text)
        text = IN_WORD.sub(lambda found: found[0] if found[0] == "'" else "a", text)
    else:
        text = IN_WORD.sub("a", text)
    text = IN_NUMBER.sub(",", text).translate(PLAIN_SPACES)
    if text.isascii():
        return text
    known, pairs = letters_of_moses(), zip(original, text, strict=True)  # some are parts of abbreviations
    return "".join(was if was in known else "a" if now.isalpha() else now for was, now in pairs)


@cache
def letters_of_moses() -> frozenset[str]:
    """Return the characters that Moses' rules treat as letters or digits."""
    from sacremoses import MosesTokenizer  # noqa: PLC0415  # as in Tokenizer

    return frozenset(MosesTokenizer.IsAlnum)


def cut(text: str, words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield, for each word, the spaces before it and its characters in the text."""
    place = 0
    for word in words:
        start = place
        while ord(text[place]) in MARK_OF_SPACE:
            place += 1
        yield text[start:place], text[place : place + len(word)]
        place += len(word)


def marked(cuts: list[tuple[str, str]], end: str, language: str) -> list[str]:
    """Return words, with marks where the spaces before them, or at the end, differ from the default."""
    spacing, words = Spacing(language), [word.translate(MARK_OF_SPACE) for _, word in cuts]
    usual = [spacing.before(word) for word in words]
    for i, (gap, _) in enumerate(cuts):
        if gap != usual[i]:
            mark = gap.translate(MARK_OF_SPACE) or JOINED
            if i and words[i][0].isalnum() and not cuts[i - 1][1][-1].isalnum():
                words[i - 1] += mark
            else:
                words[i] = mark + words[i]
    if end:
        words[-1] += end.translate(MARK_OF_SPACE)
    return words
