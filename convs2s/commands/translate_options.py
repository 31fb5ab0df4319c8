"""The options of `convs2s translate`, and which of them go together."""

import argparse
import itertools
from pathlib import Path

from convs2s.base.parallel import MOST_PROCESSES
from convs2s.commands.shared import (
    CAPITALS,
    COUNT,
    FILE,
    KEEP_LITERALS,
    MODELS,
    NUMBER,
    PROCESSOR,
    SWITCH,
    YES_OR_NO,
    Option,
    check_range,
)
from convs2s.commands.translate_files import STANDARD

FOLDER = "(default: the model folder's)"

OPTIONS = {
    "": (
        Option("--model", MODELS, "model folder, or several as an ensemble"),
        Option("--input", FILE, "UTF-8 text (default: standard input)"),
        Option("--output", FILE, "file to write (default: standard output)"),
        Option(
            "--format",
            {"choices": ["text", "html"], "default": "text"},
            "html: the input is a page, of which all but the text stays as it is; text: lines of plain text",
        ),
    ),
    "search": (
        Option(
            "--beam-size",
            COUNT,
            f"hypotheses kept per sentence; 1 is greedy {FOLDER}",
            changes_folder=True,
        ),
        Option(
            "--alpha",
            NUMBER,
            f"scores are log-likelihood / length^alpha {FOLDER}",
            changes_folder=True,
        ),
        Option(
            "--max-length-ratio",
            NUMBER,
            f"longest hypothesis, without EOS: X * source tokens + N tokens {FOLDER}",
            changes_folder=True,
        ),
        Option(
            "--max-length-extra",
            {**NUMBER, "metavar": "N"},
            f"see --max-length-ratio {FOLDER}",
            changes_folder=True,
        ),
        Option("--replace", YES_OR_NO, f"replace unknown words by attention {FOLDER}"),
        KEEP_LITERALS,
        Option(
            "--prefix",
            FILE,
            "line i has the whole words that translation i begins with; may be empty (default: none)",
            is_for_one_sentence=True,
        ),
        Option(
            "--split-sentences",
            YES_OR_NO,
            "translate each sentence of a line by itself, as it was trained, and keep the space between them "
            "(default: yes for typed lines, unless the model folder says no; no for a file or a pipe)",
        ),
        CAPITALS,
    ),
    "output": (
        Option(
            "--n-best",
            COUNT,
            "write up to N lines per sentence, best first: SENTENCE ||| TEXT ||| SCORE, with sentences "
            "counted from 0; N is at most the beam size (default: only the best text)",
            changes_folder=True,
            is_for_one_sentence=True,
        ),
        Option("--scores", SWITCH, "put the score and a TAB before the text", is_for_one_sentence=True),
        Option(
            "--score",
            FILE,
            "do not translate: line i of FILE is a translation of line i; write its log-likelihood in nats, "
            "a TAB and its number of tokens, both including EOS (default: translate)",
            is_for_one_sentence=True,
        ),
        Option(
            "--alignment",
            FILE,
            "also write FILE: line i links words of line i with words of its translation, by attention, as "
            "pairs SOURCE-TARGET; words are the tokenizer's, counted from 0 (default: none)",
            is_for_one_sentence=True,
        ),
    ),
    "sampling": (
        Option("--sample", SWITCH, "draw translations (--n-best: how many) instead of searching"),
        Option(
            "--temperature",
            {**NUMBER, "default": 1.0},
            "below 1, likely words become likelier; above 1, less likely",
        ),
        Option("--top-k", COUNT, "draw only from the N likeliest tokens (default: all)"),
        Option("--seed", {**COUNT, "default": 1}, "the same seed gives the same translations"),
    ),
    "speed": (
        Option(
            "--batch-sentences",
            COUNT,
            f"sentences translated at once; a GPU takes up to 8 times as many {FOLDER}",
            changes_folder=True,
        ),
        *PROCESSOR,
        Option(
            "--processes",
            {**COUNT, "default": 1},
            "translate in N parallel processes, each on one thread, which share the model; beside a GPU they "
            "split texts into words and put translations together",
        ),
        Option(
            "--precision",
            {"choices": ["auto", "float32", "bfloat16", "int8"]},
            "precision of matrix products; auto is bfloat16 where the processor or GPU is fast with it, else "
            "float32; int8 is the fastest on an x86 CPU, and computed there even if there is a GPU "
            f"{FOLDER}",
            changes_folder=True,
        ),
        Option(
            "--search",
            {"choices": ["auto", "host", "device", "graphs"], "default": "auto"},
            "where beam search keeps its hypotheses; auto is the device on a GPU, else the host; graphs, of "
            "version 1.1, means device (default: auto)",
        ),
        Option(
            "--candidates",
            FILE,
            "file from `convs2s candidates`: consider only the target entries that it lists for the "
            "sentences (default: as set in the model folder)",
        ),
    ),
}
"""The command's options by the title of their group; the first group has none."""


def check_options(options: argparse.Namespace) -> None:
    """Raise ValueError if options do not go together."""
    check_range(options, 1, MOST_PROCESSES, "threads", "processes")
    if options.score and (options.prefix or options.alignment or options.sample):
        raise ValueError("--score does not translate. Leave out --prefix, --alignment and --sample.")
    if options.input in STANDARD and Path("-") in (options.score, options.prefix):
        raise ValueError("Standard input cannot be both texts of --score or --prefix. Name a file for one.")
    if not options.sample and (options.temperature, options.top_k, options.seed) != (1.0, None, 1):
        raise ValueError("--temperature, --top-k and --seed are for sampling. Add --sample, or omit them.")
    if options.format == "html" and (one_sentence := list_one_sentence(options)):
        names = ", ".join(one_sentence)
        raise ValueError(f"{names} is for lines of text. Leave it out, or leave out --format html.")
    if options.split_sentences and (one_sentence := list_one_sentence(options)):
        names = ", ".join(one_sentence)
        raise ValueError(f"{names} is for one sentence a line. Leave it out, or leave out --split-sentences.")


def list_one_sentence(options: argparse.Namespace) -> list[str]:
    """Return the flags given that need lines of one sentence."""
    return [
        option.flag
        for option in itertools.chain(*OPTIONS.values())
        if option.is_for_one_sentence and getattr(options, option.name)
    ]
