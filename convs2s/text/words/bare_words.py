"""What a word is to alignment, to the dictionary and to unknown-word replacement.

Usually a word is what the tokenizer made. In lossless text, the marks of unusual spacing are left off; and
where nothing was tokenized, so that "house," stands between spaces, a word is a run of letters and digits,
with combining marks, apostrophes, hyphens and points inside, or any other single character. A short elided
word, as in l'eau, is a word of its own.
"""

import re

from convs2s.config.tokenize import TokenizeParams
from convs2s.text.words.letters import with_letters_for_marks
from convs2s.text.words.lossless import MARK_OF_SPACE, MARKED, ZERO_WIDTH_SPACE, join_by_spaces

WORD = re.compile(r"\w{1,2}['’](?=\w\w)|\w+(?:(?:['’·.\u00ad-]|(?<=\d)[,:\u00a0\u202f](?=\d))\w+)*|[^\w\s]")
UNKNOWN = re.compile(r"[\w'’-]*(?:<unk>[\w'’-]*)+")


def bare_words(words: list[str], params: TokenizeParams) -> list[str]:
    """Return the words of a tokenized sentence, of which there may be more in text that is not tokenized."""
    if not params.lossless:
        return words
    if params.tokenizer == "none":
        text = join_by_spaces(words)
        shadow = with_letters_for_marks(text).replace(chr(ZERO_WIDTH_SPACE), " ")
        return [text[slice(*found.span())].translate(MARK_OF_SPACE) for found in WORD.finditer(shadow)]
    return [found[2] for word in words if (found := MARKED.fullmatch(word))]


def bare_word(word: str, params: TokenizeParams) -> str:
    """Return the first word with a letter or digit in what the tokenizer made; else the first."""
    found = bare_words([word], params)
    return next((one for one in found if one[0].isalnum()), found[0] if found else word)


def with_replaced(word: str, replacement: str, params: TokenizeParams) -> str:
    """Return a word with a replacement for what is unknown in it; its marks and punctuation stay."""
    if not params.lossless:
        return replacement
    found = UNKNOWN.search(with_letters_for_marks(word))
    return word[: found.start()] + replacement + word[found.end() :] if found else word
