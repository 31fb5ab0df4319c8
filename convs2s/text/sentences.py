"""Sentences of a text, which a model translates one by one, and the text that their translations make.

Models learn from pairs of sentences. Of a line of several they may translate only some, and nothing in the
result says so. Where a sentence ends is decided by sentencex, which knows the abbreviations of many
languages, takes the rules of a near one or English for any other, and does not split when unsure. The tables
MASKS, CERTAIN_ENDS, LIKELY_ENDS and JOINS have what we do otherwise; `python -m benchmarks.split` says what
each of these rules gains and loses.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from sentencex import segment

from convs2s.text.words import literals
from convs2s.text.words.characters import SENTENCE_ENDS, find_letter
from convs2s.text.words.orthography import CAPITALIZES_NOUNS

UNUSUAL = re.compile(r"[\s\ud800-\udfff]")
"""Characters that sentencex is shown as plain spaces: some make it fail, such as U+2028 after an initial."""
OTHER_LINE_END = re.compile(r"[\v\f\x1c-\x1e\x85\u2028\u2029]|\r(?!\n)")
"""What some programs take for a line end; a line's translation must be one line to all of them."""
WITHOUT_SPACES = {"ja", "wuu", "yue", "zh"}
"""ISO 639 codes of languages that write no space between sentences."""
WITH_ORDINALS = {
    "cs", "da", "de", "et", "fi", "hr", "hu", "is", "lb", "lv", "nb", "nn", "no", "pl", "sk", "sl", "sr",
    "tr",
}  # fmt: skip
"""ISO 639 codes of languages in which 2. is also second."""
APOSTROPHE = re.compile(r"(?<![^\s(])['’](?=(?:[stnkmr]|tis|twas|em)(?!['’\w]))", re.IGNORECASE)
"""The apostrophe of a short word, such as Dutch 's, which sentencex takes for a quotation mark."""
QUOTED_END = re.compile(
    r"[」』）】〉》”’](?!\s)|(?<=[」』])(?:と|って|など)|(?<=[」』”])(?:[、，]|"
    r"[\u3400-\u9fff]{1,6}(?<!知)[说說道问問喊叫答][着道]?[，,：:。！？；])"
)
"""What a sentence goes on with after a quoted one: 「はい。」と言った and “好。”他说 are one sentence."""
INITIAL = re.compile(r"(?<![\w.°])([A-ZÀ-ÖØ-ÞА-ЯЁ])\.\s+\Z")
"""A single capital letter at the end, such as M. in French, but not the last one of U.S. or 20 °C."""
COMMON_WORDS = {
    "cs": "co no tu", "da": "da din form med nat ned regn var", "de": "Bart OK mag mich",
    "en": "OK Ok fed may me miss no", "es": "bien mar no nos",
    "hu": "Nem nem", "it": "ci fa li lo mai me mi no ore so te va via",
    "nb": "del det kan med min ut", "nl": "al bel best dat hand me pas top",
    "nn": "det kan med min ut", "no": "del det kan med min ut", "ru": "муж", "sk": "no tu",
    "sv": "del det hon kan med min ord sen ut", "tr": "kan sen ver",
}  # fmt: skip
"""Words that end sentences, and that sentencex takes for abbreviations, as me for Maine, by language."""
LAST_WORD = re.compile(r"(?<!Dr\. )(?<![\w.'’-])([^\W\d_]+)\.[\"”“’»]?\s+(?=\S)")
NAME_OF_PART = re.compile(r"(?:[IVXLC]{2,}|[B-HJ-Z](?!\s+[^\W\d_]))\b")
"""What such a word has after it as an abbreviation, as in no. XII and sen. B."""
NUMBER = re.compile(r"\(?\d")
BEFORE_NUMBER = re.compile(
    r"(?<![\w.])(?:approx|cap|ch|chap|eqs?|figs?|max|min|no|pag|pág|ref|sect?|tabs?|vols?)\.\s+\Z",
    re.IGNORECASE,
)
"""An abbreviation at the end that has a number after it, in several languages."""
NOUN = re.compile(r"\b(?:a|the)\s(?:cap|max|min|ref|sect?|tabs?)\.\s+\Z", re.IGNORECASE)
"""One of these that is a noun in English, at the end."""
TWO_PARTS = re.compile(r"(?<![\w.])[^\W\d_]{1,2}\.\s?[^\W\d_]{1,4}\.\s+\Z")
"""An abbreviation of two words at the end, such as Swedish t.ex. and Russian т. е."""
HYPHEN = re.compile(r"(?<=\.)-\w")
HYPHENATED = re.compile(r"\w\.-[^\W\d_]{1,4}\.\s+\Z")
"""An abbreviation with a hyphen at the end, as of J.-P. Sartre and Dipl.-Ing. Huber."""
ORDINAL = re.compile(
    r"\b(?:(?:d|ein|jed|dies|[ms]ein|kein|ihr|unser|eur)(?:e[mnrs]?|as|ie)?|[ai]m|beim|ins|vom|zu[mr])"
    r"\s(?:\d+\.\s(?:und|oder|bis)\s)?\d{1,3}\.\s+\Z",
    re.IGNORECASE,
)
"""A German ordinal at the end: a number after an article, as in der 2. Mann."""
NO_NOUN = re.compile(
    r"(?:Ich|Du|Er|Sie|Es|Wir|Ihr|Man|D(?:as|er|ie|en|em)|Dies(?:e[rsm]?)?|Ein(?:e[rsmn]?)?|Kein\w*|[MS]eine?|"
    r"A[mnb]|Auf|Im|In|Bei|Mit|Nach|Vo[mnr]|Zu[mr]?|Und|Aber|Da(?:nn|nach|her)?|Dort|Hier|Heute|Jetzt|Alle|"
    r"Wenn|We[rm]|Wie|Was|Wo|Wann|Warum|Ja|Nein|Bitte)\b"
)
"""What is no noun, so that a number before it ends a sentence: Er kommt am 5. Sie nicht."""
LABEL = re.compile(r"(?<!\S)[•⁃*-]?\s?[(\[]?(\d{1,3}|[A-Za-z]|[ivx]{2,5})[.)\]]{1,3}(?=\s)")
"""The number or letter of an item in a list."""
AT_START = re.compile(literals.LABEL)
LABEL_ALONE = re.compile(rf"\s*{LABEL.pattern}\s*")
ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
NOTE = re.compile(r"\s*(?:[-–—]\s*)?\[[^\[\]]*\]\s+")
SMILEY = re.compile(r"\s(?:[:;]['’-]?[()DP]|[\U0001f600-\U0001f64f]+)\s+(?=\S)")
ELLIPSIS = re.compile(r"…\s+(?=\S)")
BRACKETED = re.compile(r"(?:\A|(?<=[.!?]\s))\((?:[^()]*[!?]|[^()\s]+\s[^()]*(?<!\.\w)\.)\)\s+(?=\S)")
"""A sentence in brackets, such as (It was late.) but not (Dr.) nor (the U.S.)"""
DASH = re.compile(r"(?:--|[–—])\s*(\w)")
LINE = re.compile(r"[^\n]*\n|[^\n]+")
TABS = re.compile(r"\t+")
ROW = re.compile(r"\s*\|\s.*\s\|\s*")
BORDER = re.compile(r"(?<!\S)\|\s+")
WINDOW = 10_000
"""Characters that sentencex is shown at a time: with quotation marks, its time grows with the square."""


def split_sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text, each with the white space that follows it; joined, they are the text.

    A line end always ends a sentence, so a sentence must not go on over two lines; so does the end of a cell
    in a table. White space at the start belongs to the first sentence, and so does what has no letter, such
    as the number of an item, to the next.

    Args:
        language: ISO 639 code.
    """
    shown = text
    for mask in MASKS.values():
        shown = mask(shown)
    shown = UNUSUAL.sub(" ", shown)
    ends = {end for find_ends in CERTAIN_ENDS.values() for end in find_ends(text)}
    sentences = list[str]()
    for start, end in itertools.pairwise(sorted({0, *ends, len(text)})):
        sentences += split_stretch(text[start:end], shown[start:end], language)
    return attach_white_space(sentences)


def split_stretch(text: str, shown: str, language: str) -> Iterator[str]:
    """Yield the sentences of a text without certain ends, of which sentencex is to see `shown`."""
    ends = {len(text), *find_ends_by_sentencex(shown, language)}
    for find_further in LIKELY_ENDS.values():
        ends.update(find_further(text, language))
    begin = last = 0
    has_letter = False
    for end in sorted(ends):
        has_letter = has_letter or find_letter(text, last, end) is not None
        last = end
        goes_on = not has_letter or any(join(text, begin, end, language) for join in JOINS.values())
        if end == len(text) or not goes_on:
            yield text[begin:end]
            begin = end
            has_letter = False


def find_ends_by_sentencex(shown: str, language: str) -> Iterator[int]:
    """Yield where sentences end; of a window, the last end is that of what the next begins with."""
    position = 0
    while position < len(shown):
        pieces = segment(language, shown[position : position + WINDOW])
        if position + WINDOW < len(shown):
            pieces.pop()
        for piece in pieces:
            position += len(piece)
            yield position
        if not pieces:
            position += WINDOW


def mask_literals(text: str) -> str:
    """Return a text in which the punctuation of literals is hidden."""
    parts = list[str]()
    position = 0
    for start, end in literals.find_literals(text):
        if AT_START.match(text, start):  # sentencex knows lists
            continue
        if text[start] == "[":  # and footnotes, but none with letters
            masked = re.sub(r"[^\[\]]", "1", text[start:end])
        else:
            masked = re.sub(r"\W", "X", text[start:end])
            # Nor does a sentence end where a literal follows without a space.
            if start > 0 and not text[start - 1].isspace():
                masked = "x" + masked[1:]
        parts += [text[position:start], masked]
        position = end
    return "".join(parts) + text[position:]


def mask_apostrophes(text: str) -> str:
    """Return a text in which the apostrophes that sentencex takes for quotation marks are hidden."""
    return APOSTROPHE.sub("X", text)


def end_lines(text: str) -> Iterator[int]:
    """Yield where each line ends."""
    return (line.end() for line in LINE.finditer(text))


def end_cells(text: str) -> Iterator[int]:
    """Yield where cells of tables end: at tabs, and at the borders of a row | such | as | this |."""
    for match in TABS.finditer(text):
        yield match.end()
    for line in LINE.finditer(text):
        if ROW.fullmatch(line[0]):
            yield from (border.end() for border in BORDER.finditer(text, *line.span()))


def end_items(text: str, language: str) -> Iterator[int]:
    """Yield where the items of a list end that stand on one line: before each label but the first."""
    labels = list(LABEL.finditer(text))
    if not labels or text[: labels[0].start()].strip():
        return
    run = labels[:1]
    for label in labels[1:]:
        before = text[max(0, label.start() - 2) : label.start()].rstrip()
        is_ordinal = label[1].isdecimal() and label[0].endswith(".") and language in WITH_ORDINALS
        is_sure = not is_ordinal or before.endswith(SENTENCE_ENDS)
        if is_sure and label[1] == next_label(run[-1][1]):
            run.append(label)
    # "I met a. Smith and b. Jones" is no list, but three letters in order are.
    if len(run) > 2 or run[0][1].isdecimal() or run[0][1] in ROMAN:
        yield from (label.start() for label in run[1:])


def next_label(label: str) -> str:
    """Return the label of the next item."""
    if label.isdecimal():
        return str(int(label) + 1)
    if label in ROMAN[:-1]:
        return ROMAN[ROMAN.index(label) + 1]
    return chr(ord(label[-1]) + 1)


def end_note(text: str, language: str) -> Iterator[int]:
    """Yield where a note in brackets ends that a text begins with, such as [DOOR OPENS] in subtitles."""
    if note := NOTE.match(text):
        yield note.end()


def end_before_capitals(pattern: re.Pattern[str]) -> Callable[[str, str], Iterator[int]]:
    """Return a function that yields where matches of a pattern end before a capital letter."""

    def find_ends(text: str, _: str) -> Iterator[int]:
        return (match.end() for match in pattern.finditer(text) if text[match.end()].isupper())

    return find_ends


def end_words(text: str, language: str) -> Iterator[int]:
    """Yield where sentences end with a word that sentencex takes for an abbreviation, as in Come with me."""
    words = COMMON_WORDS.get(language, "").split()
    for match in LAST_WORD.finditer(text):
        if match[1] in words and text[match.end()].isupper() and not NAME_OF_PART.match(text, match.end()):
            yield match.end()


def is_label(text: str, begin: int, end: int, language: str) -> bool:
    """Return whether a piece is the label of an item, which belongs to the item."""
    return LABEL_ALONE.fullmatch(text, begin, end) is not None


def is_initial(text: str, begin: int, end: int, language: str) -> bool:
    """Return whether a piece ends with an initial of which sentencex knows nothing in this language."""
    initial = INITIAL.search(text, max(begin, end - 10), end)
    return initial is not None and not knows_initial(initial[1], language)


@functools.cache
def knows_initial(letter: str, language: str) -> bool:
    """Return whether sentencex takes a letter before a name for an initial, unless it has a reason not to."""
    return len(segment(language, f"x {letter}. Xx x")) == 1


def is_abbreviation(text: str, begin: int, end: int, language: str) -> bool:
    """Return whether a piece ends with an abbreviation or ordinal of which sentencex knows nothing."""
    start = max(begin, end - 40)
    if HYPHEN.match(text, end) or HYPHENATED.search(text, start, end):
        return True
    if text[end : end + 1].islower():
        return TWO_PARTS.search(text, start, end) is not None
    if NUMBER.match(text, end):
        is_noun = language == "en" and NOUN.search(text, start, end) is not None
        return not is_noun and BEFORE_NUMBER.search(text, start, end) is not None
    if language not in CAPITALIZES_NOUNS or NO_NOUN.match(text, end):
        return False
    return ORDINAL.search(text, start, end) is not None


def is_aside(text: str, begin: int, end: int, language: str) -> bool:
    """Return whether the sentence goes on after what is set off by dashes."""
    dash = DASH.match(text, end)
    return dash is not None and dash[1].islower()


def is_quoted(text: str, begin: int, end: int, language: str) -> bool:
    """Return whether the sentence goes on after a quoted one."""
    return QUOTED_END.match(text, end) is not None


MASKS: dict[str, Callable[[str], str]] = {"literals": mask_literals, "apostrophes": mask_apostrophes}
"""What sentencex does not see: functions that return a text of equal length."""
CERTAIN_ENDS: dict[str, Callable[[str], Iterable[int]]] = {"line ends": end_lines, "cells": end_cells}
"""Functions that yield where sentences of a text end in any case."""
LIKELY_ENDS: dict[str, Callable[[str, str], Iterable[int]]] = {
    "items": end_items,
    "notes": end_note,
    "smileys": end_before_capitals(SMILEY),
    "ellipses": end_before_capitals(ELLIPSIS),
    "brackets": end_before_capitals(BRACKETED),
    "words": end_words,
}
"""Functions that yield where, given the language, sentences end besides where sentencex says."""
JOINS: dict[str, Callable[[str, int, int, str], bool]] = {
    "labels": is_label,
    "initials": is_initial,
    "abbreviations": is_abbreviation,
    "quotes": is_quoted,
    "dashes": is_aside,
}
"""Functions that say whether a sentence goes on that begins and seems to end at these places of a text."""


def attach_white_space(pieces: Sequence[str]) -> list[str]:
    """Return pieces of a text, those of white space joined to the piece before, or to the first."""
    joined = list[str]()
    for piece in pieces:
        if joined and (piece.isspace() or joined[-1].isspace()):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def join_sentences(sentences: Sequence[str], translations: Sequence[str], language: str) -> str:
    """Return the translation of a text, with the white space between its sentences as `write_space` has it.

    Args:
        sentences: of the text, from `split_sentences`.
        translations: of each sentence.
        language: of the translations, an ISO 639 code.
    """
    parts = list[str]()
    for sentence, translation in zip(sentences, translations, strict=True):
        parts += [translation, write_space(sentence[len(sentence.rstrip()) :], language)]
    return "".join(parts[:-1])


def write_space(space: str, language: str) -> str:
    """Return the white space between the translations of two sentences: as it was between the sentences.

    But a single space follows the habit of the target language: it is left out in Chinese and Japanese, and
    put in where the source, in one of these, has none.
    """
    if space in ("", " ", "\u3000"):
        return "" if language in WITHOUT_SPACES else " "
    return OTHER_LINE_END.sub(" ", space)
