"""`convs2s export`: a model folder -> torch.export and ONNX files."""

import argparse
from pathlib import Path
from typing import Any

from convs2s.commands.help import Help, examples


def add(commands: Any) -> None:
    """Add the command's parser.

    Args:
        commands: what argparse's `add_subparsers` returned.
    """
    command = commands.add_parser(
        "export",
        help="export a model's encoder and decoder step as torch.export and ONNX files",
        description="Write a model's encoder and decoder step as .pt2 (torch.export) and .onnx files, with "
        "weight norm folded in, and compare them with the model. The vocabularies are included, and so is "
        "translate.py, an example that decodes with only onnxruntime and NumPy. "
        "Needs: pip install 'convs2s[export]'.",
        formatter_class=Help,
        epilog=examples("convs2s export --model data/models/1 --out exported"),
    )
    command.set_defaults(run=run)
    command.add_argument("--model", required=True, type=Path, metavar="DIR", help="model folder")
    command.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="folder to write; must not exist"
    )


def run(options: argparse.Namespace) -> None:
    """Export a model and print how closely the result matches it.

    Raises:
        OSError, ValueError: as `export_model` of convs2s.exchange.
    """
    from convs2s.exchange.export import export_model  # noqa: PLC0415  # takes seconds; --help must not

    print(f"{options.out}: {export_model(options.model, options.out)}")
