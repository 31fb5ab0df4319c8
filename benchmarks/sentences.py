"""Quality of whole texts: sentences joined to longer lines, translated as they are and sentence by sentence.

    python -m benchmarks.sentences --model data/models/1 --source test.en --target test.de

draws sentences, always the same ones, joins 1, 2, 3 and 5 of them to a line (in Chinese and Japanese without
a space), translates the lines both ways, and prints their BLEU, and the share of lines that were split where
they had been joined.
"""

import argparse
import random
from collections.abc import Sequence

from benchmarks.harness import SEED, Report, add_common, program, words_per_line
from convs2s.base.files import read_lines
from convs2s.package.translator import load
from convs2s.score.corpus_scores import TOKENIZERS, WORDS, bleu
from convs2s.text.sentences import WITHOUT_SPACES

COLUMNS = ("sentences a line", "lines", "split right", "as one sentence", "sentence by sentence")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the text, and how many sentences to join."""
    add_common(parser, "model", "source", "target", sentences=900)
    parser.add_argument("--joined", type=int, nargs="+", default=[1, 2, 3, 5], help="sentences a line")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Translate and score."""
    translator = load(options.model, "cpu", n_best=1, precision="float32")
    source, target = translator.source.language, translator.target.language
    pairs = list(zip(read_lines(options.source), read_lines(options.target), strict=True))
    random.Random(SEED).shuffle(pairs)
    texts, references = zip(*pairs[: options.sentences], strict=True)
    tokenizer = TOKENIZERS.get(target, WORDS)
    report.note(languages=f"{source}-{target}", lines=len(texts), words_per_line=words_per_line(texts))
    report.table(COLUMNS)
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
        right = found / len(lines)
        report.add(
            count, len(lines), f"{right:.1%}", *(f"{score:.1f}" for score in scores),
            joined=count, lines=len(lines), split_right=right, bleu=scores,
        )  # fmt: skip


def groups(sentences: Sequence[str], count: int) -> list[list[str]]:
    """Return successive sentences, `count` at a time; the last group may have fewer."""
    starts = range(0, len(sentences), count)
    return [[sentence.strip() for sentence in sentences[i : i + count]] for i in starts]


def join(sentences: Sequence[str], count: int, language: str) -> list[str]:
    """Return lines of `count` successive sentences each."""
    space = "" if language in WITHOUT_SPACES else " "
    return [space.join(group) for group in groups(sentences, count)]


main = program(__doc__, add_options, measure)

if __name__ == "__main__":
    main()
