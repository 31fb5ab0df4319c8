"""`convs2s translate`: lines of text -> lines of text, with a model folder."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from convs2s.base.messages import visible
from convs2s.commands.shared import add_command, add_processor, check_positive, pause_garbage_collection
from convs2s.commands.translate_files import (
    SecondFile,
    chunks,
    count_lines_left,
    is_file,
    open_input,
    open_output,
    show_progress,
)

if TYPE_CHECKING:
    from convs2s.decode.sampling import Sampling
    from convs2s.package.translator import Translator

FOLDER = "(default: the model folder's)"
SEARCH = (
    "beam_size", "alpha", "max_length_ratio", "max_length_extra", "n_best", "batch_sentences", "precision",
)  # fmt: skip
"""Options that change the settings of the model folder."""


def add(commands: Any) -> None:
    """Add the command's parser."""
    command = add_command(
        commands,
        "translate",
        run,
        "translate text, one line in, one line out",
        "Translate text, one line in, one line out. Lines that are typed or piped in are translated at once; "
        "files are translated in large chunks, which is faster.",
        'echo "The cat sleeps." | convs2s translate --model data/models/1',
        "convs2s translate --model data/models/1 --input source.txt --output target.txt",
        "convs2s translate --model data/models/1 --input source.txt --n-best 5 > nbest.txt",
        "convs2s translate --model data/models/1 --input source.txt --score target.txt",
        "convs2s translate --model data/models/1 --sample --top-k 10 --seed 3 < source.txt",
    )
    add = command.add_argument
    text = "model folder, or several as an ensemble"
    add("--model", required=True, action="extend", nargs="+", type=Path, metavar="DIR", help=text)
    add("--input", type=Path, metavar="FILE", help="UTF-8 text (default: standard input)")
    add("--output", type=Path, metavar="FILE", help="file to write (default: standard output)")
    add_search(command)
    add_forms(command)
    add_sampling(command)
    add_machine(command)


def add_search(command: argparse.ArgumentParser) -> None:
    """Add the options of the search."""
    add = command.add_argument_group("search").add_argument
    add("--beam-size", type=int, metavar="N", help=f"hypotheses kept per sentence; 1 is greedy {FOLDER}")
    add("--alpha", type=float, metavar="X", help=f"scores are log-likelihood / length^alpha {FOLDER}")
    text = f"longest hypothesis: X * source tokens + N tokens {FOLDER}"
    add("--max-length-ratio", type=float, metavar="X", help=text)
    text = f"see --max-length-ratio; EOS does not count {FOLDER}"
    add("--max-length-extra", type=float, metavar="N", help=text)
    text = f"replace unknown words by attention {FOLDER}"
    add("--replace", action=argparse.BooleanOptionalAction, help=text)
    text = "line i has the whole words that translation i begins with; may be empty (default: none)"
    add("--prefix", type=Path, metavar="FILE", help=text)


def add_forms(command: argparse.ArgumentParser) -> None:
    """Add the options for the output."""
    add = command.add_argument_group("output").add_argument
    text = (
        "write up to N lines per sentence, best first: SENTENCE ||| TEXT ||| SCORE, with sentences counted "
        "from 0; N is at most the beam size (default: only the best text)"
    )
    add("--n-best", type=int, metavar="N", help=text)
    add("--scores", action="store_true", help="put the score and a TAB before the text")
    text = (
        "do not translate: line i of FILE is a translation of line i; write its log-likelihood in nats, a "
        "TAB and its number of tokens, both including EOS (default: translate)"
    )
    add("--score", type=Path, metavar="FILE", help=text)
    text = (
        "also write FILE: line i links words of line i with words of its translation, by attention, as pairs "
        "SOURCE-TARGET; words are the tokenizer's, counted from 0 (default: none)"
    )
    add("--alignment", type=Path, metavar="FILE", help=text)


def add_sampling(command: argparse.ArgumentParser) -> None:
    """Add the options of sampling."""
    add = command.add_argument_group("sampling").add_argument
    add("--sample", action="store_true", help="draw translations (--n-best: how many) instead of searching")
    text = "below 1, likely words become likelier; above 1, less likely (default: 1.0)"
    add("--temperature", type=float, metavar="X", help=text)
    add("--top-k", type=int, metavar="N", help="draw only from the N likeliest tokens (default: all)")
    add("--seed", type=int, metavar="N", help="the same seed gives the same translations (default: 1)")


def add_machine(command: argparse.ArgumentParser) -> None:
    """Add the options for speed."""
    add = command.add_argument_group("speed").add_argument
    add("--batch-sentences", type=int, metavar="N", help=f"sentences translated at once {FOLDER}")
    add_processor(add)
    text = "on a CPU: translate in N parallel processes, each on one thread, which share the model"
    add("--processes", type=int, default=1, metavar="N", help=text)
    text = (
        "precision of matrix products; auto is bfloat16 where the processor or GPU is fast with it, else "
        f"float32; int8 is the fastest on an x86 CPU {FOLDER}"
    )
    add("--precision", choices=["auto", "float32", "bfloat16", "int8"], help=text)
    text = (
        "file from `convs2s candidates`: consider only the target entries that it lists for the sentences "
        "(default: as set in the model folder)"
    )
    add("--candidates", type=Path, metavar="FILE", help=text)


def run(options: argparse.Namespace) -> None:
    """Translate input to output a chunk at a time, so that neither need fit in memory."""
    check(options)
    given = [(f"--{name}", getattr(options, name)) for name in ("score", "prefix")]
    second = next((SecondFile(option, path) for option, path in given if path is not None), None)
    sampling, translator = make_sampling(options), load_translator(options)
    if (precision := translator.words.precision).is_slow:
        print(f"convs2s: {precision}", file=sys.stderr)
    if options.input is None and sys.stdin.isatty() and translator.facts is not None:
        print(visible(f"{translator.facts.name}: {translator.facts.summary()}"), file=sys.stderr)
    with (
        open_input(options.input) as source,
        open_output(options.output) as out,
        nullcontext()
        if options.alignment is None
        else open_output(options.alignment, "--alignment") as links,
        show_progress(source, options.output) as on_done,
    ):
        number = 0
        if second is not None and is_file(source):
            second.check_length(count_lines_left(source))
        for texts in chunks(options.input, source, translator.words.params.batch_sentences):
            paired = None if second is None else second.take(len(texts))
            for line in answer(translator, texts, number, paired, sampling, options, on_done, links):
                out.write(line.encode("utf-8") + b"\n")
            out.flush()
            number += len(texts)
        if second is not None:
            second.check_end()


def check(options: argparse.Namespace) -> None:
    """Check, before any slow work, that each option has an effect, and that --model has folders, not text."""
    check_positive(options, "threads", "processes")
    for applies, names, why in (
        (options.processes > 1, ("threads",), "with --processes"),
        (not options.sample, ("temperature", "top_k", "seed"), "without --sample"),
        (options.sample, ("beam_size",), "with --sample"),
        (options.score, ("n_best", "scores", "prefix", "sample", "beam_size", "alignment"), "with --score"),
    ):
        given = [name for name in names if not any(getattr(options, name) is no for no in (None, False))]
        if applies and given:
            flags = ", ".join("--" + name.replace("_", "-") for name in given)
            raise ValueError(f"{flags} {why} would do nothing. Leave out one or the other.")
    for name, path in (("input", options.input), ("output", options.output)):
        if options.alignment and path and options.alignment.resolve() == path.resolve():
            raise ValueError(f"--alignment {options.alignment} is also --{name}. Expected a file of its own.")
    for model in options.model:
        if not (model.is_dir() or str(model).startswith("hf:")):  # a model on the Hub
            raise FileNotFoundError(
                f"--model {model} is not a folder. Expected a model folder, such as data/models/1; text to "
                "translate goes after --input, or to standard input."
            )


def make_sampling(options: argparse.Namespace) -> "Sampling | None":
    """Return how to draw translations; None to search."""
    if not options.sample:
        return None
    from convs2s.decode.sampling import Sampling  # noqa: PLC0415  # as in load_translator

    names = "temperature", "top_k", "seed"
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    return Sampling(**{"seed": 1, **given})


def load_translator(options: argparse.Namespace) -> "Translator":
    """Load the model with the requested settings."""
    changes = {name: value for name in SEARCH if (value := getattr(options, name)) is not None}
    if options.sample:
        changes["n_best"] = changes["beam_size"] = options.n_best or 1
    elif "beam_size" in changes and "n_best" not in changes:
        changes["n_best"] = 1  # else a model packaged with a larger n_best would refuse a small beam
    with pause_garbage_collection():
        # These imports take seconds; --help must not.
        import torch  # noqa: PLC0415

        from convs2s.package.translator import load  # noqa: PLC0415

        if options.threads is not None:
            torch.set_num_threads(options.threads)
        try:
            return load(
                options.model,
                options.device,
                replace=options.replace,
                candidates=options.candidates,
                processes=options.processes,
                **changes,
            )
        except ValueError as error:
            claim, _, faults = str(error).partition("translate:\n")  # from `load`, of the keys in `changes`
            if claim or not faults:
                raise
            names = rf"\b({'|'.join(SEARCH)})\b"
            raise ValueError(re.sub(names, lambda name: "--" + name[0].replace("_", "-"), faults)) from error


def answer(
    translator: "Translator",
    texts: list[str],
    number: int,
    paired: list[str] | None,
    sampling: "Sampling | None",
    options: argparse.Namespace,
    on_done: Callable[[int], object],
    links: IO[bytes] | None,
) -> Iterator[str]:
    """Yield the output lines for some texts, the first of which is line `number` of the input.

    A text has its translation, after its score if requested; or a line per hypothesis, in the n-best format
    of Moses and Marian; or the log-likelihood and number of tokens of its line in the second file, `paired`.
    The links of each best translation go to `links`.
    """
    if options.score and paired is not None:
        for given in translator.score(texts, paired, on_done):
            yield f"{given.log_likelihood:.4f}\t{given.tokens}"
        return
    sampling = sampling and replace(sampling, first=number)
    found = translator.translate_n_best(texts, prefixes=paired, sampling=sampling, on_done=on_done)
    for sentence, ranked in enumerate(found, start=number):
        if links is not None:
            pairs = (f"{source}-{target}" for source, target in translator.align(ranked[0]))
            links.write(" ".join(pairs).encode() + b"\n")
        if options.n_best:
            yield from (f"{sentence} ||| {one.text} ||| {one.score:.4f}" for one in ranked)
        elif options.scores:
            yield f"{ranked[0].score:.4f}\t{ranked[0].text}"
        else:
            yield ranked[0].text
