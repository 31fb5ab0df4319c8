"""Raw text -> words and back, as in Moses (sacremoses); any text becomes one line."""

import re
import unicodedata
from functools import cached_property
from pathlib import Path
from typing import Any

from convs2s.config.tokenize import TokenizeParams
from convs2s.ids.vocabulary import read_counts
from convs2s.text.words.orthography import comma_below, lower, typographic, without_diacritics
from convs2s.text.words.truecasing import Truecaser, detruecase

NUMBER = re.compile(r"[0-9]+")
LINE_END = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
UNUSUAL = re.compile(r"[^\w ,.?!'-]|[_ºª]|  |''")
"""What text contains if a rule for punctuation can change it; sacremoses tries 45 rules on any text."""
DOTS_BEFORE_QUOTE = r'(\.+)"(\s*[^<])'
"""sacremoses' rule for German, Spanish and French that reads n dots from each of them, so n times."""
DOTS = re.compile(r'(\.+)(?:"(\s*[^<]))?')
"""Dots read once, and what follows their quotation mark if that rule applies."""
FIRST_MARK = 0xF0000
"""The space with code n is marked by a private-use character, the one with code FIRST_MARK + n."""
MARKS_OF_SPACES = {n: FIRST_MARK + n for n in range(0x3001) if chr(n).isspace() and chr(n) != " "}
"""Spaces that raw text keeps, such as no-break spaces, and their marks."""
MARK_OF_SPACE = chr(FIRST_MARK + ord(" "))
"""The mark of a plain space that follows another."""
OBJECT = "\ufffc"
"""Unicode's object replacement character: the place in a text of what stays as it is, such as a picture."""
SPACES_OF_MARKS = {mark: n for n, mark in MARKS_OF_SPACES.items()} | {ord(MARK_OF_SPACE): " "}


SHOWN_SPACES = dict.fromkeys(SPACES_OF_MARKS, "\N{OPEN BOX}")
"""For str.translate: shows these marks to people, whose fonts have no picture for them."""


class SpaceForUnprintable(dict[int, str]):
    """For str.translate: maps control, format and private-use characters to spaces, others to themselves.

    Moses' remove-non-printing-char replaces every character of category C, including unassigned ones. We
    keep those: which characters are unassigned depends on the version of Python, and words must not.
    """

    def __missing__(self, code: int) -> str:
        self[code] = " " if unicodedata.category(chr(code)) in ("Cc", "Cf", "Co") else chr(code)
        return self[code]


class Tokenizer:
    """Splits sentences into words, and joins words to sentences, in one language.

    Args:
        language: ISO 639 code; languages that Moses does not support get its English rules.
        truecaser: gives words their mid-sentence case, if `params.truecase`; None leaves them unchanged.
    """

    def __init__(self, language: str, params: TokenizeParams, truecaser: Truecaser | None = None) -> None:
        self.language = language
        self.params = params
        self.truecaser = truecaser if params.truecase else None
        self._spaces = SpaceForUnprintable()

    # sacremoses takes 0.4 s to import; text that does not need it should not wait.
    @cached_property
    def _normalizer(self) -> Any:
        from sacremoses import MosesPunctNormalizer  # noqa: PLC0415

        normalizer = MosesPunctNormalizer(self.language, perl_parity=True)  # T31
        normalizer.substitutions = [
            (DOTS, dots_after_quote) if rule[0] == DOTS_BEFORE_QUOTE else rule
            for rule in normalizer.substitutions
        ]
        return normalizer

    @cached_property
    def _tokenizer(self) -> Any:
        from sacremoses import MosesTokenizer  # noqa: PLC0415

        return MosesTokenizer(self.language)

    @cached_property
    def _detokenizer(self) -> Any:
        from sacremoses import MosesDetokenizer  # noqa: PLC0415

        # For Czech, sacremoses 0.2 mistakes the sentence's last words for a number's neighbors, and fails
        # on "-li".
        return MosesDetokenizer("none" if self.language == "cs" else self.language)

    def words(self, line: str) -> list[str]:
        """Return the words of a corpus line, which may already be tokenized."""
        if self.params.corpus == "tokenized":
            return self._recase(self._compose(line).split())
        return self.tokenize(line)

    def tokenize(self, text: str) -> list[str]:
        """Return the words of raw text; none is empty or contains whitespace, line ends included."""
        text = self._compose(text)
        if self.params.tokenizer == "none":
            return self._recase(text.split())
        if self.params.tokenizer == "spaces":
            return self._recase(split_at_spaces(text))
        text = self._normalize(text)
        words: list[str] = self._tokenizer.tokenize(
            text, aggressive_dash_splits=self.params.aggressive_hyphens, escape=self.params.escape
        )
        if self.params.at_sign != "@":
            words = [word.replace("@", self.params.at_sign) for word in words]
        return self._recase(words)

    def detokenize(self, words: list[str]) -> str:
        """Join words into a sentence on one line, with case, escapes and at signs restored."""
        text = self._join(self.restore_case(words))
        return typographic(text, self.language) if self.params.typography else text

    def restore_case(self, words: list[str]) -> list[str]:
        """Return a translation's words, with capitals at sentence starts if `truecase` removed them."""
        return detruecase(words, self.language) if self.params.truecase else words

    def reference(self, line: str) -> str:
        """Return a corpus line as a detokenized translation should look: raw, or lowercased if words are.

        Unicode is normalized as in translations, because scores compare characters.
        """
        if self.params.corpus == "tokenized":
            line = self._join(line.split())
        text = self._compose(line)
        return lower(text, self.language) if self.params.lowercase else text

    def _compose(self, text: str) -> str:
        return unicodedata.normalize("NFC", text) if self.params.normalize_unicode else text

    def _normalize(self, text: str) -> str:
        if self.params.normalize_punctuation:
            text = self._normalizer.normalize(text) if UNUSUAL.search(text) else text.strip()
        if self.language == "ro" and self.params.normalize_romanian:
            text = comma_below(text)
        if self.language == "ro" and self.params.remove_diacritics:
            text = without_diacritics(text)
        return text.translate(self._spaces) if self.params.remove_nonprinting else text

    def _recase(self, words: list[str]) -> list[str]:
        if self.params.lowercase:
            return [lower(word, self.language) for word in words]
        return words if self.truecaser is None else self.truecaser.truecase(words)

    def _join(self, words: list[str]) -> str:
        if self.params.tokenizer == "none":
            return " ".join(words)
        if self.params.tokenizer == "spaces":
            return " ".join(words).translate(SPACES_OF_MARKS)
        if self.params.at_sign != "@":
            words = [word.replace(self.params.at_sign, "@") for word in words]
        if self.language == "cs":
            words = with_whole_numbers(words)
        return str(self._detokenizer.detokenize(words, unescape=self.params.escape))


def dots_after_quote(dots: re.Match[str]) -> str:
    """Return dots and the quotation mark after them in the other order; dots without one unchanged."""
    return dots[1] if dots[2] is None else f'"{dots[1]}{dots[2]}'


def split_at_spaces(text: str) -> list[str]:
    """Split raw text at single spaces; a mark takes the place of every other space, so that none is lost."""
    text = LINE_END.sub(" ", text).strip().replace("  ", " " + MARK_OF_SPACE)
    return text.translate(MARKS_OF_SPACES).split()


def with_whole_numbers(words: list[str]) -> list[str]:
    """Return words with the parts of numbers, such as 3 , 14, joined, as Moses does for Czech."""
    whole = list[str]()
    for i, word in enumerate(words):
        if i > 1 and NUMBER.fullmatch(words[i - 2]) and words[i - 1] in (".", ",") and NUMBER.fullmatch(word):
            whole[-2:] = ["".join(whole[-2:]) + word]
        else:
            whole.append(word)
    return whole


def load_tokenizer(language: str, params: TokenizeParams, truecaser: Path) -> Tokenizer:
    """Return a tokenizer, with its truecaser if `params.truecase`.

    Args:
        truecaser: the file that the stage truecase wrote for this side, read if `params.truecase`.
    """
    counts = read_counts(truecaser, "truecase") if params.truecase else {}
    return Tokenizer(language, params, Truecaser(counts, language))
