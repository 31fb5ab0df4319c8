"""Commands on a model folder: `attention` and `candidates`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from convs2s.commands.shared import add_command, require_packages

# Slow imports are within the functions that run: --help must not take seconds.


def add_attention(commands: Any) -> None:
    """Add the parser of `convs2s attention`."""
    command = add_command(
        commands,
        "attention",
        run_attention,
        "show what each decoder layer attends to",
        "Translate a text and draw a heat map of what each decoder layer attended to, and of the average. "
        "Needs: pip install 'convs2s[attention]'.",
        'convs2s attention "My dog is sleeping." --model data/models/1 --out dog.png',
    )
    add = command.add_argument
    add("text", help="a sentence")
    add("--model", required=True, type=Path, metavar="DIR", help="model folder")
    add("--out", required=True, type=Path, metavar="FILE", help="PNG file to write")


def run_attention(options: argparse.Namespace) -> None:
    """Translate the text; draw its attention. Errors are those of `read_attention_of`."""
    require_packages("attention", "matplotlib")
    from convs2s.package.layer_attention import read_attention_of  # noqa: PLC0415
    from convs2s.score.pictures import draw_layers  # noqa: PLC0415

    attention = read_attention_of(options.model, options.text)
    titles = [f"layer {number}" for number in attention.numbers]
    maps = [*zip(titles, attention.layers, strict=True), ("average", attention.average)]
    draw_layers(maps, attention.source, attention.target, options.out)


def add_candidates(commands: Any) -> None:
    """Add the parser of `convs2s candidates`."""
    command = add_command(
        commands,
        "candidates",
        run_candidates,
        "make the file for `translate --candidates`, which speeds up translation",
        "Split parallel text into a model's vocabulary entries, align them, and write the target entries "
        "that each source entry is linked to. With this file, translation considers only the target entries "
        "that the source sentences need. The model's own training data work best.",
        "convs2s candidates --model MODEL --source train.en --target train.de --output candidates.npz",
        "convs2s translate --model MODEL --candidates candidates.npz --input new.en",
    )
    for name, kind, text in (
        ("--model", "DIR", "model folder, trained or imported"),
        ("--source", "FILE", "UTF-8 text, one sentence per line"),
        ("--target", "FILE", "its translation, line by line"),
        ("--output", "FILE", "file to write, such as candidates.npz"),
    ):
        command.add_argument(name, required=True, type=Path, metavar=kind, help=text)


def run_candidates(options: argparse.Namespace) -> None:
    """Write the candidates."""
    from convs2s.package.text_candidates import write_candidates_of_text  # noqa: PLC0415

    summary = write_candidates_of_text(options.model, options.source, options.target, options.output)
    print(f"{options.output}: {summary}", file=sys.stderr)
