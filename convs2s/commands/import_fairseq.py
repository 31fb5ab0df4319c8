"""`convs2s import-fairseq`: a fairseq checkpoint -> a model folder."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convs2s.config.tokenize import TokenizeParams

# Options of the Moses tokenizer, with the value that changes nothing.
MOSES = {
    "normalize_punctuation": False,
    "remove_nonprinting": False,
    "aggressive_hyphens": False,
    "escape": True,
    "at_sign": "@",
}


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
    add("--lowercase", action="store_true", help="lower-case all words, after either tokenizer")
    add(
        "--max-length-ratio",
        type=float,
        metavar="X",
        help="longest hypothesis: X * source tokens + N tokens, end marks not counted (default: 1.2); "
        "fairseq's --max-len-a A --max-len-b B, which counts the source's end mark, is X = A and N = A + B",
    )
    add("--max-length-extra", type=int, metavar="N", help="see --max-length-ratio (default: 11)")
    moses = command.add_argument_group("with --tokenizer moses")
    flag = moses.add_argument
    flag("--normalize-punctuation", action="store_true", help="as Moses' script of this name")
    flag("--remove-nonprinting", action="store_true", help="replace control characters by spaces")
    flag("--aggressive-hyphens", action="store_true", help="well-known -> well @-@ known")
    flag("--no-escape", dest="escape", action="store_false", help="keep &, <, >, quotes and brackets")
    flag(
        "--at-sign",
        choices=["@", "##AT##"],
        default="@",
        help="what stands for @, that of split hyphens too: ##AT## for models of Stanford's WMT'14 text, as "
        "fairseq's English-German one; with --aggressive-hyphens well-known -> well ##AT##-##AT## known",
    )


def run(options: argparse.Namespace) -> None:
    """Import a checkpoint and say what it is.

    Raises:
        OSError, ValueError: as `import_fairseq` of convs2s.exchange.
    """
    # They take seconds; --help must not.
    from convs2s.exchange.fairseq_import import Segmentation, import_fairseq, search  # noqa: PLC0415

    segmentation = Segmentation("word", None)
    if options.bpe_codes:
        segmentation = Segmentation("subword-nmt", options.bpe_codes)
    elif options.sentencepiece_model:
        segmentation = Segmentation("sentencepiece", options.sentencepiece_model)
    limit = {name: getattr(options, name) for name in ("max_length_ratio", "max_length_extra")}
    done = import_fairseq(
        options.checkpoint,
        (options.source_dict, options.target_dict),
        options.out,
        (options.source_language, options.target_language),
        tokenization(options),
        segmentation,
        search({name: value for name, value in limit.items() if value is not None}),
    )
    print(f"{options.out}: {done}")


def tokenization(options: argparse.Namespace) -> "TokenizeParams":
    """Return how text becomes words.

    Raises:
        ValueError: if an option could have no effect, or a wrong one.
    """
    from convs2s.config.tokenize import TokenizeParams  # noqa: PLC0415  # as above

    moses = {name: getattr(options, name) for name in MOSES}
    if options.tokenizer == "none" and moses != MOSES:
        idle = [spelled(name, value) for name, value in moses.items() if value != MOSES[name]]
        raise ValueError(
            f"{', '.join(idle)} without --tokenizer moses would do nothing, for words parted by spaces are "
            "looked up as they stand. Wanted both or neither: add --tokenizer moses for raw text; leave it "
            "all out for text that is tokenized like the training text."
        )
    if options.lowercase and options.at_sign != "@":
        raise ValueError(
            f"--lowercase and --at-sign {options.at_sign} are both given; wanted at most one of them, for "
            "lower-casing would make another word of what stands for @."
        )
    return TokenizeParams(
        tokenizer=options.tokenizer,
        corpus="raw",
        normalize_romanian=False,
        remove_diacritics=False,
        lowercase=options.lowercase,
        truecase=False,
        **moses,
    )


def spelled(name: str, value: object) -> str:
    """Return an option of Moses as it is given."""
    return {"escape": "--no-escape", "at_sign": f"--at-sign {value}"}.get(name, "--" + name.replace("_", "-"))
