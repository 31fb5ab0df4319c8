"""How much text survives preparation: tokenize, segment and join again, per language.

    python -m benchmarks.round_trip cs=FILE fr=FILE ...

Each file is raw UTF-8 text in that language, one sentence per line, plain or compressed. Lines drawn from it
are tokenized, segmented with --size pieces learned from them, and joined again. The table has a row per
language and a column per preparation; numbers are the percentage of lines that come back unchanged, after
Unicode normalization (NFC).
"""

import argparse
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from benchmarks.harness import Report, add_common, draw_lines, program, words_per_line
from convs2s.config.tokenize import TokenizeParams
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.learning import write_codecs
from convs2s.text.words.tokenization import Tokenizer
from pipelines.preset import preset_params

PREPARATIONS: dict[str, tuple[Literal["bpe", "sentencepiece"], dict[str, object]]] = {
    "moses": ("bpe", {}),
    "moses, no normalization": ("bpe", {"normalize_punctuation": False}),
    "sentencepiece": ("sentencepiece", {"tokenizer": "spaces", "normalize_unicode": True}),
}
"""The kind of vocabulary, and changes to the paper's tokenization."""


def survivors(lines: Sequence[str], language: str, preparation: str, size: int) -> list[bool]:
    """Return which lines come back unchanged."""
    kind, changes = PREPARATIONS[preparation]
    params = {**preset_params("tatoeba-en-de").tokenize.model_dump(), **changes}
    tokenizer = Tokenizer(language, TokenizeParams.model_validate(params))
    sentences = [tokenizer.words(line) for line in lines]
    counts = Counter(word for words in sentences for word in words)
    with TemporaryDirectory() as folder:
        write_codecs(Path(folder), (counts, counts), kind, joint=True, sizes=(size, size))
        codec = Codec.load(Path(folder), "target")
    back = (tokenizer.detokenize(codec.decode(codec.encode(words))) for words in sentences)
    return [line == unicodedata.normalize("NFC", before) for line, before in zip(back, lines, strict=True)]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the texts."""
    parser.add_argument("texts", nargs="+", metavar="LANGUAGE=FILE")
    parser.add_argument("--size", type=int, default=4000, help="of the vocabulary")
    add_common(parser, sentences=3000)


def measure(options: argparse.Namespace, report: Report) -> None:
    """Prepare each text in each way."""
    report.table(("text", "lines", "words a line", *PREPARATIONS))
    for text in options.texts:
        language, _, path = text.partition("=")
        lines = [line.strip() for line in draw_lines(Path(path), options.sentences)]
        result: dict[str, object] = {"text": f"{language} {Path(path).name}", "lines": len(lines)}
        result["words_per_line"] = words_per_line(lines)
        for name in PREPARATIONS:
            same = survivors(lines, language, name, options.size)
            result[name] = round(100 * sum(same) / len(same), 1)
        report.add(**result)


main = program(__doc__, add_options, measure, packages=["sacremoses", "sentencepiece"])

if __name__ == "__main__":
    main()
