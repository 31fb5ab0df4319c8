"""Quality of whole texts: sentences joined to longer lines, translated as they are and sentence by sentence.

    python -m benchmarks.sentences --model data/models/1 --source test.en --target test.de

draws sentences, always the same ones, joins 1, 2, 3 and 5 of them to a line (in Chinese and Japanese without
a space), translates the lines both ways, and prints their BLEU, and the share of lines that were split where
they had been joined.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, make_parser, print_table, write_report
from convs2s.base.files import read_lines
from convs2s.package.translator import load
from convs2s.score.corpus_scores import TOKENIZERS, WORDS, bleu
from convs2s.text.sentences import WITHOUT_SPACES

COLUMNS = ("sentences a line", "lines", "split right", "as one sentence", "sentence by sentence")


def main(arguments: Sequence[str] | None = None) -> None:
    """Translate, score, print and write."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="model folder")
    parser.add_argument("--source", type=Path, required=True, help="text, one sentence per line")
    parser.add_argument("--target", type=Path, required=True, help="its translation, line by line")
    parser.add_argument("--sentences", type=int, default=900, help="how many to draw")
    parser.add_argument("--joined", type=int, nargs="+", default=[1, 2, 3, 5], help="sentences a line")
    options = parser.parse_args(arguments)
    translator = load(options.model, "cpu", n_best=1, precision="float32")
    source, target = translator.source.language, translator.target.language
    pairs = list(zip(read_lines(options.source), read_lines(options.target), strict=True))
    random.Random(1).shuffle(pairs)
    texts, references = zip(*pairs[: options.sentences], strict=True)
    about: dict[str, Any] = {"machine": machine(), "languages": f"{source}-{target}"}
    tokenizer = TOKENIZERS.get(target, WORDS)
    print(", ".join(f"{key} {value}" for key, value in about["machine"].items()))
    results: list[dict[str, Any]] = []
    for count in options.joined:
        lines = join(texts, count, source)
        expected = join(references, count, target)
        found = sum(
            [sentence.strip() for sentence in translator.split(line)] == sentences
            for line, sentences in zip(lines, groups(texts, count), strict=True)
        )
        scores = [
            bleu(translator.translate(lines, split_sentences=splits), expected, tokenizer).value
            for splits in (False, True)
        ]
        results.append(
            {"joined": count, "lines": len(lines), "split_right": found / len(lines), "bleu": scores}
        )
    print_table(COLUMNS, (cells(result) for result in results))
    write_report(options.json, about, results)


def groups(sentences: Sequence[str], count: int) -> list[list[str]]:
    """Return successive sentences, `count` at a time; the last group may have fewer."""
    starts = range(0, len(sentences), count)
    return [[sentence.strip() for sentence in sentences[i : i + count]] for i in starts]


def join(sentences: Sequence[str], count: int, language: str) -> list[str]:
    """Return lines of `count` successive sentences each."""
    space = "" if language in WITHOUT_SPACES else " "
    return [space.join(group) for group in groups(sentences, count)]


def cells(result: dict[str, Any]) -> list[object]:
    """Return a row of the table."""
    scores = [f"{score:.1f}" for score in result["bleu"]]
    return [result["joined"], result["lines"], f"{result['split_right']:.1%}", *scores]


if __name__ == "__main__":
    main()
