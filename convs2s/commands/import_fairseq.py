"""`convs2s import-fairseq`: a fairseq checkpoint -> a model folder."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convs2s.commands.shared import add_command

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
# Options that change the search of the model folder, if they are given.
LIMITS = ("max_length_ratio", "max_length_extra", "max_length_of")


def add(commands: Any) -> None:
    """Add the command's parser."""
    command = add_command(
        commands,
        "import-fairseq",
        run,
        "turn a fairseq fconv checkpoint into a model folder",
        "Turn a fairseq fconv checkpoint into a model folder; nothing in it is executed.",
        "convs2s import-fairseq model.pt --source-dict dict.en.txt --target-dict dict.de.txt "
        "--bpe-codes bpecodes --tokenizer moses --out model",
    )
    add = command.add_argument
    pieces = command.add_mutually_exclusive_group()
    add("checkpoint", type=Path, metavar="CHECKPOINT", help="checkpoint from any version of fairseq")
    add("--source-dict", required=True, type=Path, metavar="FILE", help="fairseq dictionary of the source")
    add("--target-dict", required=True, type=Path, metavar="FILE", help="fairseq dictionary of the target")
    add("--out", required=True, type=Path, metavar="DIR", help="model folder to write; must not exist")
    text = "such as en (default: the checkpoint's, or CODE of dict.CODE.txt)"
    add("--source-language", metavar="CODE", help=text)
    add("--target-language", metavar="CODE", help="such as de (default: likewise)")
    text = "subword-nmt codes; without them, whole words are looked up, so segment the text (default: none)"
    pieces.add_argument("--bpe-codes", type=Path, metavar="FILE", help=text)
    text = "with --bpe-codes: the --vocabulary given to subword-nmt apply-bpe for the source (default: none)"
    add("--bpe-vocabulary", type=Path, metavar="FILE", help=text)
    add("--bpe-vocabulary-threshold", type=int, default=1, metavar="N", help="its --vocabulary-threshold")
    text = "instead of --bpe-codes (default: none)"
    pieces.add_argument("--sentencepiece-model", type=Path, metavar="FILE", help=text)
    text = (
        "longest hypothesis: X * source tokens + N tokens, not counting EOS (default: 1.2); for fairseq's "
        "--max-len-a A --max-len-b B, which count the source's EOS, give X = A and N = A + B"
    )
    add("--max-length-ratio", type=float, metavar="X", help=text)
    add("--max-length-extra", type=float, metavar="N", help="see --max-length-ratio (default: 11.2)")
    text = (
        "which source tokens count: the sentence's own, or those of the longest sentence in the batch, as in "
        "fairseq (default: sentence)"
    )
    add("--max-length-of", choices=["sentence", "batch"], help=text)
    text = "none: for whitespace-separated words, and for SentencePiece"
    add("--tokenizer", choices=["moses", "none"], default="none", help=text)
    add("--lowercase", action="store_true", help="lowercase all words, with either tokenizer")
    add = command.add_argument_group("with --tokenizer moses").add_argument
    add("--normalize-punctuation", action="store_true", help="like Moses' script of that name")
    add("--remove-nonprinting", action="store_true", help="replace control characters with spaces")
    add("--aggressive-hyphens", action="store_true", help="well-known -> well @-@ known")
    text = "do not escape &, <, >, quotes and brackets"
    add("--no-escape", dest="escape", action="store_false", help=text)
    text = (
        "how @ is written, including in split hyphens: ##AT## for models trained on Stanford's WMT'14 text, "
        "such as fairseq's English-German model; with --aggressive-hyphens, well-known -> well ##AT##-##AT## "
        "known"
    )
    add("--at-sign", choices=["@", "##AT##"], default="@", help=text)


def run(options: argparse.Namespace) -> None:
    """Import a checkpoint and print a summary of it; errors as `import_fairseq` of convs2s.fairseq."""
    # This import takes seconds; --help must not.
    from convs2s.fairseq.importer import import_fairseq  # noqa: PLC0415

    limits = {name: getattr(options, name) for name in LIMITS}
    summary = import_fairseq(
        options.checkpoint,
        (options.source_dict, options.target_dict),
        options.out,
        (options.source_language, options.target_language),
        read_tokenization(options),
        {name: value for name, value in limits.items() if value is not None},
        bpe_codes=options.bpe_codes,
        bpe_vocabulary=options.bpe_vocabulary,
        bpe_vocabulary_threshold=options.bpe_vocabulary_threshold,
        sentencepiece_model=options.sentencepiece_model,
    )
    print(f"{options.out}: {summary}")


def read_tokenization(options: argparse.Namespace) -> "TokenizeParams":
    """Return the tokenization settings."""
    from convs2s.config.faults import validate  # noqa: PLC0415  # as above
    from convs2s.config.tokenize import TokenizeParams  # noqa: PLC0415

    moses = {name: getattr(options, name) for name in MOSES}
    if options.tokenizer == "none" and moses != MOSES:
        raise ValueError(
            "The options of the Moses tokenizer would do nothing without --tokenizer moses. Add it for raw "
            "text, or drop them for text that is tokenized like the training text."
        )
    names = "normalize_unicode", "normalize_romanian", "remove_diacritics", "truecase", "typography"
    own = {"tokenizer": options.tokenizer, "corpus": "raw", "lowercase": options.lowercase}
    content = {**own, **dict.fromkeys(names, False), **moses}
    return validate(TokenizeParams, content, "the options of the tokenizer are invalid")
