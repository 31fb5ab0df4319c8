"""The command `convs2s attention`: what each decoder layer attends to, as pictures or as numbers."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from convs2s.commands.help import Help, examples

if TYPE_CHECKING:
    from convs2s.package.layer_attention import LayerAttention

SUFFIXES = (".png", ".npz")


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "attention",
        help="show what each decoder layer attends to",
        description="Translate a text and show what each decoder layer attended to, and the average. A .png "
        "file gets heat maps; a .npz file gets the weights, as the arrays layers (layer, target, source), "
        "numbers (of the layers), average (target, source), source and target (the tokens).",
        formatter_class=Help,
        epilog=examples(
            'convs2s attention "A dog runs." --model data/models/1 --out attention.png --out attention.npz'
        ),
    )
    command.add_argument("text", help="a sentence")
    command.add_argument("--model", required=True, type=Path, metavar="DIR", help="model folder")
    command.add_argument(
        "--out",
        required=True,
        type=Path,
        action="append",
        metavar="FILE",
        help="file to write, .png or .npz; may be given several times",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Translate the text; write the requested files.

    Raises:
        FileNotFoundError: if a file of the model folder is missing.
        ValueError: if an output file is neither PNG nor NPZ, the model is damaged or the text is empty.
    """
    check_names(options.out)
    from convs2s.package.layer_attention import read_attention_of, write_layers  # noqa: PLC0415  # seconds

    attention = read_attention_of(options.model, options.text)
    for path in options.out:
        if path.suffix.lower() == ".npz":
            write_layers(path, attention)
        else:
            draw(path, attention)


def check_names(paths: list[Path]) -> None:
    """Raise ValueError unless all files are PNG or NPZ, before any slow work."""
    for path in paths:
        if path.suffix.lower() not in SUFFIXES:
            raise ValueError(
                f"--out {path}: expected the suffix .png for heat maps or .npz for the weights, found "
                f"{path.suffix!r}."
            )


def draw(path: Path, attention: "LayerAttention") -> None:
    """Write a heat map of every layer and of the average."""
    from convs2s.score.pictures import draw_layers  # noqa: PLC0415  # takes a second

    titles = [f"layer {number}" for number in attention.numbers]
    maps = [*zip(titles, attention.layers, strict=True), ("average", attention.average)]
    draw_layers(maps, attention.source, attention.target, path)
