"""`convs2s import-fairseq`: a fairseq checkpoint -> a model folder."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convs2s.commands.shared import (
    COUNT,
    FILE,
    NUMBER,
    SWITCH,
    Option,
    add_command,
    add_options,
    list_changes,
)

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
EXCLUSIVE = ("bpe_codes", "sentencepiece_model")
"""Options of which at most one is given."""
DICTIONARY = {**FILE, "required": True}
LANGUAGE = {"metavar": "CODE"}
OPTIONS = (
    Option("checkpoint", {"type": Path, "metavar": "CHECKPOINT"}, "checkpoint from any version of fairseq"),
    Option("--source-dict", DICTIONARY, "fairseq dictionary of the source"),
    Option("--target-dict", DICTIONARY, "fairseq dictionary of the target"),
    Option(
        "--out",
        {"required": True, "type": Path, "metavar": "DIR"},
        "model folder to write; must not exist",
    ),
    Option("--source-language", LANGUAGE, "such as en (default: the checkpoint's, or CODE of dict.CODE.txt)"),
    Option("--target-language", LANGUAGE, "such as de (default: likewise)"),
    Option(
        "--bpe-codes",
        FILE,
        "subword-nmt codes; without them, whole words are looked up, so segment the text (default: none)",
    ),
    Option(
        "--bpe-vocabulary",
        FILE,
        "with --bpe-codes: the --vocabulary given to subword-nmt apply-bpe for the source (default: none)",
    ),
    Option("--bpe-vocabulary-threshold", {**COUNT, "default": 1}, "its --vocabulary-threshold"),
    Option("--sentencepiece-model", FILE, "instead of --bpe-codes (default: none)"),
    Option(
        "--max-length-ratio",
        NUMBER,
        "longest hypothesis: X * source tokens + N tokens, not counting EOS (default: 1.2); for fairseq's "
        "--max-len-a A --max-len-b B, which count the source's EOS, give X = A and N = A + B",
        changes_folder=True,
    ),
    Option(
        "--max-length-extra",
        {**NUMBER, "metavar": "N"},
        "see --max-length-ratio (default: 11.2)",
        changes_folder=True,
    ),
    Option(
        "--max-length-of",
        {"choices": ["sentence", "batch"]},
        "which source tokens count: the sentence's own, or those of the longest sentence in the batch, as in "
        "fairseq (default: sentence)",
        changes_folder=True,
    ),
    Option(
        "--tokenizer",
        {"choices": ["moses", "none"], "default": "none"},
        "none: for whitespace-separated words, and for SentencePiece",
    ),
    Option("--lowercase", SWITCH, "lowercase all words, with either tokenizer"),
)
MOSES_OPTIONS = (
    Option("--normalize-punctuation", SWITCH, "like Moses' script of that name"),
    Option("--remove-nonprinting", SWITCH, "replace control characters with spaces"),
    Option("--aggressive-hyphens", SWITCH, "well-known -> well @-@ known"),
    Option(
        "--no-escape",
        {"dest": "escape", "action": "store_false"},
        "do not escape &, <, >, quotes and brackets",
    ),
    Option(
        "--at-sign",
        {"choices": ["@", "##AT##"], "default": "@"},
        "how @ is written, including in split hyphens: ##AT## for models trained on Stanford's WMT'14 text, "
        "such as fairseq's English-German model; with --aggressive-hyphens, well-known -> well ##AT##-##AT## "
        "known",
    ),
)


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
    exclusive = command.add_mutually_exclusive_group()
    for option in OPTIONS:
        add_options(exclusive if option.name in EXCLUSIVE else command, [option])
    add_options(command.add_argument_group("with --tokenizer moses"), MOSES_OPTIONS)


def run(options: argparse.Namespace) -> None:
    """Import a checkpoint and print a summary of it; errors as `import_fairseq` of convs2s.fairseq."""
    # This import takes seconds; --help must not.
    from convs2s.fairseq.importer import import_fairseq  # noqa: PLC0415

    summary = import_fairseq(
        options.checkpoint,
        (options.source_dict, options.target_dict),
        options.out,
        (options.source_language, options.target_language),
        read_tokenization(options),
        list_changes(options, OPTIONS),
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
