"""`convs2s import-fairseq`: a fairseq checkpoint -> a model folder."""

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Add the command's parser.

    Args:
        commands: what `add_subparsers` of argparse returned.
    """
    command = commands.add_parser(
        "import-fairseq",
        help="make a model folder of a fairseq fconv checkpoint",
        description="Make a model folder of a fairseq fconv checkpoint; nothing in it is executed.",
    )
    command.set_defaults(run=run)
    add = command.add_argument
    add("checkpoint", type=Path, metavar="CHECKPOINT", help="file that fairseq saved, of any version")
    add("--source-dict", required=True, type=Path, metavar="FILE", help="fairseq's dictionary of the source")
    add("--target-dict", required=True, type=Path, metavar="FILE", help="fairseq's dictionary of the target")
    add("--out", required=True, type=Path, metavar="DIR", help="model folder to write; must not exist")
    add("--source-language", metavar="CODE", help="default: the checkpoint's, or CODE of dict.CODE.txt")
    add("--target-language", metavar="CODE", help="likewise")
    pieces = command.add_mutually_exclusive_group()
    pieces.add_argument(
        "--bpe-codes",
        type=Path,
        metavar="FILE",
        help="codes of subword-nmt; without, words are types, so text must be segmented already",
    )
    pieces.add_argument("--sentencepiece-model", type=Path, metavar="FILE", help="instead of codes")
    add(
        "--tokenizer",
        choices=["moses", "none"],
        default="none",
        help="none (the default) for text whose words are parted by spaces, and for sentencepiece",
    )
    moses = command.add_argument_group("with --tokenizer moses")
    flag = moses.add_argument
    flag("--normalize-punctuation", action="store_true", help="as Moses' script of this name")
    flag("--remove-nonprinting", action="store_true", help="replace control characters by spaces")
    flag("--aggressive-hyphens", action="store_true", help="well-known -> well @-@ known")
    flag("--no-escape", dest="escape", action="store_false", help="keep &, <, >, quotes and brackets")


def run(options: argparse.Namespace) -> None:
    """Import a checkpoint and say what it is.

    Raises:
        OSError, ValueError: as `import_fairseq` of convs2s.exchange.
    """
    # They take seconds; --help must not.
    from convs2s.config import TokenizeParams  # noqa: PLC0415
    from convs2s.exchange.fairseq_import import Segmentation, import_fairseq  # noqa: PLC0415

    segmentation = Segmentation("word", None)
    if options.bpe_codes:
        segmentation = Segmentation("subword-nmt", options.bpe_codes)
    elif options.sentencepiece_model:
        segmentation = Segmentation("sentencepiece", options.sentencepiece_model)
    tokenize = TokenizeParams(
        tokenizer=options.tokenizer,
        corpus="raw",
        normalize_punctuation=options.normalize_punctuation,
        normalize_romanian=False,
        remove_diacritics=False,
        remove_nonprinting=options.remove_nonprinting,
        aggressive_hyphens=options.aggressive_hyphens,
        escape=options.escape,
        at_sign="@",
        lowercase=False,
        truecase=False,
    )
    done = import_fairseq(
        options.checkpoint,
        (options.source_dict, options.target_dict),
        options.out,
        (options.source_language, options.target_language),
        tokenize,
        segmentation,
    )
    print(f"{options.out}: {done}")
