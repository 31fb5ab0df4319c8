"""`convs2s translate`: lines of text -> lines of text, with a model folder."""

import argparse
import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from tqdm import tqdm

from convs2s.base.files import decode_lines, decode_whole
from convs2s.base.messages import is_terminal, visible
from convs2s.commands.shared import add_command, add_options, list_changes, pause_garbage_collection
from convs2s.commands.translate_files import STANDARD, chunks, count_lines, open_input, open_output
from convs2s.commands.translate_options import OPTIONS, check_options, list_one_sentence

if TYPE_CHECKING:
    from convs2s.decode.sampling import Sampling
    from convs2s.package.translator import Translation, Translator

CHUNK_BATCHES = 32
"""Batches read ahead: enough to group sentences of similar length, few enough to hold in memory."""
MANY_LINES = 0.1
"""Share of lines with several sentences above which the text is probably not one of a sentence a line."""
OnDone = Callable[[int], object]
"""Called with the number of lines that each batch completes."""
EQUAL = "Expected two files of equal length: line i of one belongs to line i of the other."


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
        "convs2s translate --model data/models/1 --format html --input page.html --output translated.html",
        "convs2s translate --model data/models/1 --sample --top-k 10 --seed 3 < source.txt",
    )
    for title, options in OPTIONS.items():
        add_options(command.add_argument_group(title) if title else command, options)


class Mode(NamedTuple):
    """What is done with the input."""

    line: Literal["page", "pair", "text", "sentence"]
    """What a line is: a part of a page of HTML, one of a pair to score, a text to split, or one sentence."""
    advice: str = ""
    """If nobody chose that a line is one sentence: what to do if many lines have several."""


def choose_mode(options: argparse.Namespace, is_typed: bool, folder_splits: bool) -> Mode:
    """Return what a line of the input is; `folder_splits` is the model folder's setting."""
    if options.format == "html":
        return Mode("page")
    if options.score:
        return Mode("pair")
    if options.split_sentences is not None:
        return Mode("text" if options.split_sentences else "sentence")
    if not folder_splits:
        return Mode("sentence")
    if list_one_sentence(options):
        return Mode("sentence", "give one a line")
    return Mode("text") if is_typed else Mode("sentence", "--split-sentences translates each")


def run(options: argparse.Namespace) -> None:
    """Translate input to output a chunk at a time, so that neither need fit in memory."""
    check_options(options)
    translator, sampling = load_translator(options)
    precision = translator.words.precision
    if precision.is_slow:
        print(f"convs2s: {precision}", file=sys.stderr)
    is_typed = options.input in STANDARD and is_terminal(sys.stdin)
    mode = choose_mode(options, is_typed, translator.splits_sentences)
    if mode.line == "page":
        translate_page(translator, sampling, options)
        return
    if is_typed and translator.facts is not None:
        print(visible(f"{translator.facts.name}: {translator.facts.summary()}"), file=sys.stderr)
    work = LineTranslator(translator, sampling, options)
    name = name_input(options)
    second_path = options.score or options.prefix
    with (
        open_input(options.input) as source,
        open_input(second_path) if second_path else contextlib.nullcontext() as second,
        open_output(options.output) as out,
        open_output(options.alignment) if options.alignment else contextlib.nullcontext() as links,
    ):
        count = count_lines(source, name)
        if second:
            require_lines(second, str(second_path), name, count)
        second_lines = decode_lines(second or (), second_path)
        with make_bar(count, options) as bar:
            for texts in chunks(source, name, CHUNK_BATCHES * translator.words.batch_sentences):
                paired = list(itertools.islice(second_lines, len(texts))) if second else None
                if paired is not None and len(paired) < len(texts):  # two pipes
                    raise ValueError(f"{second_path} ended before {name} did. {EQUAL}")
                if mode.line == "pair":
                    lines = work.score(texts, paired or [], bar.update)
                elif mode.line == "text":
                    lines = work.translate_sentences(texts, bar.update)
                else:
                    lines = work.translate_lines(texts, paired, bar.update, links)
                out.writelines(line.encode() + b"\n" for line in lines)
                out.flush()
    report_unknown(work.unknown_characters, is_scoring=mode.line == "pair")
    if mode.advice:
        report_several(work.lines_of_several, work.lines, mode.advice)


def translate_page(
    translator: "Translator", sampling: "Sampling | None", options: argparse.Namespace
) -> None:
    """Translate the input as one page of HTML, which must fit in memory."""
    from convs2s.package.html_page import TranslatedPage, read_html, trace_best  # noqa: PLC0415  # as in load_translator

    with open_input(options.input) as source, open_output(options.output) as out:
        text = decode_whole(source.readlines(), name_input(options))
        page = read_html(translator, text, options.split_sentences)
        with make_bar(len(page.sentences), options) as bar:
            n_best_lists = translator.translate_n_best(page.sentences, sampling=sampling, on_done=bar.update)
        traced = trace_best(translator, page.sentences, n_best_lists)
        translated = TranslatedPage(page, [[best] for best in traced])
        out.write(translated.of_rank(0).encode())
    report_unknown(translated.unknown_characters, is_scoring=False)
    if count := translated.emptied_elements:
        print(
            f"convs2s: elements such as links that had a word and have none in the translation: {count:,}",
            file=sys.stderr,
        )


def name_input(options: argparse.Namespace) -> str:
    """Return the name of the input for messages."""
    return "standard input" if options.input in STANDARD else str(options.input)


def make_bar(total: int | None, options: argparse.Namespace) -> tqdm:
    """Return a bar on stderr, hidden if the total is unknown or translations are on the same terminal."""
    is_hidden = total is None or (options.output in STANDARD and is_terminal(sys.stdout))
    return tqdm(
        total=total,
        desc="translate",
        unit=" sentences",
        smoothing=0,  # the average speed: recent speed misleads, as each chunk begins with long sentences
        disable=True if is_hidden else None,  # None hides it, too, if stderr is no terminal
    )


class LineTranslator:
    """Translates or scores one chunk of lines after another, and counts what they hold."""

    def __init__(
        self, translator: "Translator", sampling: "Sampling | None", options: argparse.Namespace
    ) -> None:
        self.translator = translator
        self.sampling = sampling
        self.options = options
        self.lines = 0
        self.sentences = 0  # if lines are split
        self.lines_of_several = 0  # sentences, if lines are not split
        self.unknown_characters = 0

    def score(self, texts: list[str], translations: list[str], on_done: OnDone) -> list[str]:
        """Return the likelihood and the length of each text's given translation."""
        scores = self.translator.score(texts, translations, on_done)
        self.unknown_characters += sum(score.unknown_characters for score in scores)
        return [f"{score.log_likelihood:.4f}\t{score.tokens}" for score in scores]

    def translate_sentences(self, texts: list[str], on_done: OnDone) -> list[str]:
        """Return the translation of each text, sentence by sentence."""
        sampling = self._sampling_from(self.sentences)
        translated = self.translator.translate_texts(texts, sampling=sampling, on_done=on_done)
        self.sentences += sum(len(text.sentences) for text in translated)
        self.unknown_characters += sum(text.unknown_characters for text in translated)
        return [text.text for text in translated]

    def translate_lines(
        self, texts: list[str], prefixes: list[str] | None, on_done: OnDone, links: IO[bytes] | None
    ) -> list[str]:
        """Return the output lines for texts, each taken as one sentence; write its links, if requested."""
        n_best_lists = self.translator.translate_n_best(
            texts, prefixes=prefixes, sampling=self._sampling_from(self.lines), on_done=on_done
        )
        if links:
            for best, *_ in n_best_lists:
                pairs = [f"{source}-{target}" for source, target in self.translator.align(best)]
                links.write(" ".join(pairs).encode() + b"\n")  # the format of Pharaoh
        lines = list(format_lines(n_best_lists, self.lines, self.options))
        self.lines += len(texts)
        self.lines_of_several += sum(len(self.translator.split(text)) > 1 for text in texts)
        self.unknown_characters += sum(best.unknown_characters for best, *_ in n_best_lists)
        return lines

    def _sampling_from(self, number: int) -> "Sampling | None":
        """Return how to draw for a text and those after it."""
        return None if self.sampling is None else self.sampling.model_copy(update={"first": number})


def require_lines(second: IO[bytes], second_name: str, name: str, count: int | None) -> None:
    """Raise ValueError unless a second text has `count` lines, like the first; None, of a pipe, fits none."""
    second_count = count_lines(second, second_name)
    if second_count != count:
        found = "is a pipe" if count is None else f"has {count}"
        raise ValueError(f"{second_name} has {second_count} lines but {name} {found}. {EQUAL}")


def report_several(of_several: int, count: int, advice: str) -> None:
    """Print how many of `count` lines have several sentences, if those are many, and what to do."""
    if of_several > MANY_LINES * count:
        print(
            f"convs2s: {of_several} of {count} lines have several sentences, of which a model that was "
            f"trained on single ones may leave some out: {advice} (--no-split-sentences hides this message)",
            file=sys.stderr,
        )


def report_unknown(count: int, is_scoring: bool) -> None:
    """Print how many characters the model never saw, if any, and what was done with them."""
    if count == 0:
        return
    from convs2s.decode.translations import describe_unknown  # noqa: PLC0415  # as in load_translator

    message = describe_unknown(count, "left out") if is_scoring else describe_unknown(count)
    print(f"convs2s: {message}", file=sys.stderr)


def load_translator(options: argparse.Namespace) -> "tuple[Translator, Sampling | None]":
    """Load the model with the requested settings; return it, and how to sample, None to search."""
    changes = list_changes(options, itertools.chain(*OPTIONS.values()))
    if options.sample:
        changes["n_best"] = changes["beam_size"] = options.n_best or 1
    elif "beam_size" in changes and "n_best" not in changes:
        changes["n_best"] = 1  # else a model packaged with a larger n_best would refuse a small beam
    with pause_garbage_collection():
        # These imports take seconds; --help must not.
        import torch  # noqa: PLC0415

        from convs2s.config.faults import validate  # noqa: PLC0415
        from convs2s.decode.sampling import Sampling  # noqa: PLC0415
        from convs2s.package.translator import load  # noqa: PLC0415

        drawn = {name: getattr(options, name) for name in ("temperature", "top_k", "seed")}
        sampling = validate(Sampling, drawn, "sampling is invalid") if options.sample else None
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        translator = load(
            options.model,
            options.device,
            replace=options.replace,
            candidates=options.candidates,
            processes=options.processes,
            search=options.search,
            keep_literals=options.keep_literals,
            **changes,
        )
        return translator, sampling


def format_lines(
    n_best_lists: list[list["Translation"]], first: int, options: argparse.Namespace
) -> Iterator[str]:
    """Yield the output lines for texts from line `first` on: translations, or n-best lists as Moses has."""
    for number, translations in enumerate(n_best_lists, start=first):
        for translation in translations if options.n_best else translations[:1]:
            if options.n_best:
                yield f"{number} ||| {translation.text} ||| {translation.score:.4f}"
            elif options.scores:
                yield f"{translation.score:.4f}\t{translation.text}"
            else:
                yield translation.text
