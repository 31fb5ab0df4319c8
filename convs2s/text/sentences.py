"""Sentences of a text, which a model translates one by one, and the text that their translations make.

Models learn from pairs of sentences. Of a line of several they may translate only some, and nothing in the
result says so. Where a sentence ends is decided by sentencex, which knows the abbreviations of many
languages, takes the rules of a near one or English for any other, and does not split when unsure.
"""

import re
from collections.abc import Sequence

from sentencex import segment

from convs2s.text.words.characters import find_letter

LINE = re.compile(r"[^\n]*\n|[^\n]+")
UNUSUAL = re.compile(r"[\s\ud800-\udfff]")
"""Characters that sentencex is shown as plain spaces: some make it fail, such as U+2028 after an initial."""
CONTINUATION = re.compile(r"[」』）】〉》]|(?<=[」』])(と|って|など|[、，])")
"""What a sentence goes on with where sentencex would end it: 「はい。」と言った is one sentence."""
INITIAL = re.compile(r"(?<!\w)[A-ZÀ-ÖØ-ÞА-Я]\.\s+\Z")
"""A single capital letter at the end, such as M. in French; sentencex knows these in some languages only."""
OTHER_LINE_END = re.compile(r"[\v\f\x1c-\x1e\x85\u2028\u2029]|\r(?!\n)")
"""What some programs take for a line end; a line's translation must be one line to all of them."""
WITHOUT_SPACES = {"ja", "wuu", "yue", "zh"}
"""ISO 639 codes of languages that write no space between sentences."""


def split_sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text, each with the white space that follows it; joined, they are the text.

    A line end always ends a sentence, so a sentence must not go on over two lines. White space at the start
    belongs to the first sentence, and so does what has no letter, such as the number of an item, to the next.

    Args:
        language: ISO 639 code.
    """
    sentences = list[str]()
    for line in LINE.findall(text):
        begin = end = 0  # of the sentence
        has_letter = False
        for seen in segment(language, UNUSUAL.sub(" ", line)):
            piece = line[end : end + len(seen)]
            end += len(seen)
            has_letter = has_letter or find_letter(piece) is not None
            goes_on = not has_letter or INITIAL.search(piece) or CONTINUATION.match(line, end)
            if not goes_on or end == len(line):
                sentences.append(line[begin:end])
                begin = end
                has_letter = False
    return attach_white_space(sentences)


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
