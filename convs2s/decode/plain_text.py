"""Translated words as lines of text."""

import re
from collections.abc import Sequence
from pathlib import Path

from convs2s.text.corpus.files import write_lines
from convs2s.text.words.tokenization import Tokenizer

CONTROL = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f]")


def one_line(text: str) -> str:
    """Return the text with a space for each control character except tabs: line ends, escape sequences.

    A vocabulary may contain any of them, because corpora do.
    """
    return CONTROL.sub(" ", text)


def write_text(folder: Path, name: str, sentences: Sequence[Sequence[str]], tokenizer: Tokenizer) -> None:
    """Write folder/NAME.txt, detokenized, and NAME.tok.txt, space-separated words; neither is truecased."""
    write_lines(folder / f"{name}.txt", [one_line(tokenizer.detokenize(list(words))) for words in sentences])
    tokenized = (" ".join(tokenizer.recased(list(words))) for words in sentences)
    write_lines(folder / f"{name}.tok.txt", [one_line(line) for line in tokenized])
