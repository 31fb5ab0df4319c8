"""`convs2s translate`: lines of text -> lines of text, with a model folder."""

import argparse
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from convs2s.text.corpus.files import atomic_path

if TYPE_CHECKING:
    from convs2s.package.translator import Translation, Translator

# Batches read ahead: enough to group sentences of similar length, few enough to hold in memory.
CHUNK_BATCHES = 32


def add(commands: Any) -> None:
    """Add the command's parser.

    Args:
        commands: what `add_subparsers` of argparse returned.
    """
    command = commands.add_parser(
        "translate",
        help="translate text, one line in, one line out",
        description="Translate text, one line in, one line out. Default values are the model folder's.",
    )
    command.set_defaults(run=run)
    add = command.add_argument
    add(
        "--model",
        required=True,
        nargs="+",
        type=Path,
        metavar="DIR",
        help="model folder, or several as an ensemble",
    )
    add("--input", type=Path, metavar="FILE", help="UTF-8 text; default: standard input")
    add("--output", type=Path, metavar="FILE", help="default: standard output")
    add("--beam-size", type=int, metavar="N", help="hypotheses kept per sentence; 1 is greedy search")
    add("--alpha", type=float, metavar="X", help="scores are log-likelihood / length^alpha")
    add(
        "--max-length-ratio", type=float, metavar="X", help="longest hypothesis: X * source tokens + N tokens"
    )
    add("--max-length-extra", type=float, metavar="N", help="see --max-length-ratio; EOS does not count")
    add("--n-best", type=int, metavar="N", help="up to N lines per sentence, each after its number and TAB")
    add("--scores", action="store_true", help="put the score and a TAB before the text")
    add("--replace", action=argparse.BooleanOptionalAction, help="replace unknown words by attention")
    add("--batch-sentences", type=int, metavar="N", help="sentences translated at once")
    add(
        "--candidates",
        type=Path,
        metavar="FILE",
        help="consider only the target entries that this file of `convs2s candidates` has for a batch",
    )
    add("--device", metavar="NAME", help="cpu, cuda, cuda:1, ...; default: a GPU if there is one")
    add(
        "--precision",
        choices=["float32", "bfloat16", "int8"],
        help="of matrix products; int8 is the fastest on a CPU, at about 0.1 BLEU",
    )


def run(options: argparse.Namespace) -> None:
    """Translate input to output a chunk at a time, so that neither need fit in memory."""
    from convs2s.package.translator import load  # noqa: PLC0415  # takes seconds; --help must not

    names = (
        "beam_size", "alpha", "max_length_ratio", "max_length_extra", "n_best", "batch_sentences",
        "precision",
    )  # fmt: skip
    changes = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if "beam_size" in changes and "n_best" not in changes:
        changes["n_best"] = 1  # else a model packaged with a larger n_best would refuse a small beam
    translator = load(
        options.model, options.device, replace=options.replace, candidates=options.candidates, **changes
    )
    with opened_input(options.input) as source, opened_output(options.output) as out:
        lines = decoded(source, str(options.input or "standard input"))
        interactive = options.input is None and sys.stdin.isatty()
        chunk = 1 if interactive else CHUNK_BATCHES * translator.words.params.batch_sentences
        number = 0
        while texts := list(itertools.islice(lines, chunk)):
            for line in formatted(translator, texts, number, options):
                out.write(line.encode("utf-8"))
            out.flush()
            number += len(texts)


def formatted(
    translator: "Translator", texts: list[str], number: int, options: argparse.Namespace
) -> Iterator[str]:
    """Yield the output lines for some texts; `number` is the index of the first, from 0."""

    def line(sentence: int, translation: "Translation") -> str:
        columns = [str(sentence)] if options.n_best else []
        columns += [f"{translation.score:.4f}"] if options.scores else []
        return "\t".join([*columns, translation.text]) + "\n"

    for sentence, ranked in enumerate(translator.translate_n_best(texts), start=number + 1):
        for translation in ranked if options.n_best else ranked[:1]:
            yield line(sentence, translation)


def decoded(stream: IO[bytes], name: str) -> Iterator[str]:
    r"""Yield lines without their line end, \n or \r\n.

    Raises:
        ValueError: if a line is not UTF-8, with its number.
    """
    for number, raw in enumerate(stream, start=1):
        try:
            yield raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: byte {error.start} is {raw[error.start]:#04x}, which is not UTF-8. "
                "Convert the text first, for example: iconv -f latin1 -t utf-8."
            ) from error


@contextmanager
def opened_input(path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file, or take standard input.

    Raises:
        FileNotFoundError: if there is no such file, or it is a folder.
    """
    if path is None:
        yield sys.stdin.buffer
        return
    if path.is_dir() or not path.exists():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(
            f"--input {path} {found}. Wanted UTF-8 text, one sentence per line: check the "
            "name, or leave --input out and pass the text on standard input."
        )
    with path.open("rb") as stream:
        yield stream


@contextmanager
def opened_output(path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file that appears only once complete, or take standard output.

    Raises:
        IsADirectoryError: if the path is that of a folder.
    """
    if path is None:
        yield sys.stdout.buffer
        return
    if path.is_dir():
        raise IsADirectoryError(f"--output {path} is a folder. Wanted a file, such as {path / 'out.txt'}.")
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        yield stream
