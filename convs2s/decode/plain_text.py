"""Translated words as lines of text."""

from collections.abc import Sequence
from pathlib import Path

from convs2s.text.corpus.files import write_lines
from convs2s.text.words.tokenization import Tokenizer


def one_line(text: str) -> str:
    r"""Return the text without \n and \r, the only line ends here; words may contain other separators."""
    return text.replace("\r", " ").replace("\n", " ")


def write_text(folder: Path, name: str, sentences: Sequence[Sequence[str]], tokenizer: Tokenizer) -> None:
    """Write folder/NAME.txt, detokenized, and NAME.tok.txt, space-separated words; neither is truecased."""
    write_lines(folder / f"{name}.txt", [one_line(tokenizer.detokenize(list(words))) for words in sentences])
    tokenized = (" ".join(tokenizer.recased(list(words))) for words in sentences)
    write_lines(folder / f"{name}.tok.txt", [one_line(line) for line in tokenized])
