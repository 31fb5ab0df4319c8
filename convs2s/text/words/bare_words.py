"""Words as seen by alignment, the dictionary and unknown-word replacement.

Usually these are the tokenizer's words. In lossless text, they lack the marks of unusual spacing. In text
without tokenization, where "house," includes the comma, a word is a run of letters and digits, with inner
combining marks, apostrophes, hyphens and periods, or any other single character. A short elided word, as in
l'eau, is a separate word.
"""

import re

from convs2s.config.tokenize import TokenizeParams
from convs2s.text.words.letters import with_letters_for_marks
from convs2s.text.words.lossless import MARK_OF_SPACE, MARKED, ZERO_WIDTH_SPACE, join_by_spaces

WORD = re.compile(r"\w{1,2}['’](?=\w\w)|\w+(?:(?:['’·.\u00ad-]|(?<=\d)[,:\u00a0\u202f](?=\d))\w+)*|[^\w\s]")
UNKNOWN = re.compile(r"[\w'’-]*(?:<unk>[\w'’-]*)+")


def bare_words(words: list[str], params: TokenizeParams) -> list[str]:
    """Return the bare words of a tokenized sentence; with tokenizer `none`, there may be more of them."""
    if not params.lossless:
        return words
    if params.tokenizer == "none":
        text = join_by_spaces(words)
        shadow = with_letters_for_marks(text).replace(chr(ZERO_WIDTH_SPACE), " ")
        return [text[slice(*found.span())].translate(MARK_OF_SPACE) for found in WORD.finditer(shadow)]
    return [found[2] for word in words if (found := MARKED.fullmatch(word))]


def bare_word(word: str, params: TokenizeParams) -> str:
    """Return the first bare word that starts with a letter or digit; else the first."""
    found = bare_words([word], params)
    return next((one for one in found if one[0].isalnum()), found[0] if found else word)


def with_replaced(word: str, replacement: str, params: TokenizeParams) -> str:
    """Return a word with its unknown part replaced; its marks and punctuation stay."""
    if not params.lossless:
        return replacement
    found = UNKNOWN.search(with_letters_for_marks(word))
    return word[: found.start()] + replacement + word[found.end() :] if found else word
