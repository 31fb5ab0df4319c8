"""Translation from text to text on any device: what of it is the host's work, and the speed of the whole.

    python -m benchmarks.text_to_text --model data/models/1 --source test.en --processes 4

The first table has processor microseconds a sentence, the least of all rounds: reading (text to words, words
to ids); the books that the host keeps of hypotheses, for either place; and writing (ids to words, words to
text). A search that is faster waits for these, unless several processes share them.

The second has sentences per second, in turns, with each search and with one and several processes. The last
column counts sentences whose translation is that of the first row.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

from benchmarks.harness import Report, add_common, program, speeds_in_turns
from convs2s.commands.shared import pause_garbage_collection
from convs2s.config.translate import SearchPlace
from convs2s.decode import word_translator
from convs2s.decode.load import find_device
from convs2s.decode.word_translator import WordTranslator
from convs2s.package.translator import Translator, load
from convs2s.search.search import LiveBatch

PLACES: tuple[SearchPlace, ...] = ("host", "device")
BOOKS = ("list_allowed", "record", "best")
"""The methods by which a batch keeps its books."""
PARTS = ("part", "microseconds a sentence")
WHOLE = ("search, processes", "sentences/s", "lowest", "highest", "same translations")


@contextmanager
def timed(owner: object, names: Sequence[str]) -> Iterator[list[float]]:
    """Yield a list to which each call of these methods adds its processor seconds; none may call another."""
    seconds: list[float] = []

    def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method, timed."""

        def call(*arguments: Any) -> Any:
            begin = time.process_time()
            result = method(*arguments)
            seconds.append(time.process_time() - begin)
            return result

        return call

    with ExitStack() as patches:
        for name in names:
            patches.enter_context(mock.patch.object(owner, name, wrap(getattr(owner, name))))
        yield seconds


def measure_parts(translator: Translator, texts: list[str], rounds: int) -> dict[str, float]:
    """Return the least microseconds a sentence of what the host does, by name."""
    stages = {
        "read: text to words": (Translator, ["read"]),
        "read: words to ids": (WordTranslator, ["rows"]),
        **{f"books, search: {place}": (LiveBatch, BOOKS) for place in PLACES},
        "write: ids to words": (word_translator, ["join_parts"]),
        "write: words to text": (Translator, ["_finish"]),
    }
    translator.translate(texts)
    found = {}
    for name, (owner, methods) in stages.items():
        translator.words.place = "device" if name.endswith("device") else "host"
        totals = []
        for _ in range(rounds):
            with timed(owner, methods) as seconds:
                translator.translate(texts)
            totals.append(sum(seconds))
        found[name] = 1e6 * min(totals) / len(texts)
    return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is translated, and how."""
    add = parser.add_argument
    add_common(parser, "model", "source", "processes", sentences=4096, device=None, rounds=3)
    add("--beam-size", type=int, default=5)
    add("--precision", default="auto", choices=("auto", "float32", "bfloat16"), help="of products")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Measure the parts, then the whole."""
    device = find_device(options.device)
    texts = report.draw(options.source, options.sentences)
    changes = {"beam_size": options.beam_size, "n_best": 1, "precision": options.precision}
    make = partial(load, options.model, str(device), **changes)
    report.note(device=str(device))
    with pause_garbage_collection():  # as the command does
        translator = make()
    report.table(PARTS)
    for name, microseconds in measure_parts(translator, texts, options.rounds).items():
        report.add(part=name, microseconds_per_sentence=microseconds)
    translators = {
        f"{search}, {number}": make(search=search, processes=number)
        for number in sorted({1, options.processes})
        for search in PLACES
    }
    translated = {name: one.translate(texts) for name, one in translators.items()}
    expected = next(iter(translated.values()))
    works = {name: partial(count_translated, one, texts) for name, one in translators.items()}
    report.table(WHOLE)
    for name, speeds in speeds_in_turns(works, options.rounds, device).items():
        same = sum(one == other for one, other in zip(translated[name], expected, strict=True))
        report.add(
            name, *speeds["per_second"].values(), f"{same} of {len(texts)}",
            path=name, sentences=speeds, same_translations=same / len(texts),
        )  # fmt: skip


def count_translated(translator: Translator, texts: list[str]) -> float:
    """Translate; return the number of texts."""
    return float(len(translator.translate(texts)))


main = program(__doc__, add_options, measure, packages=["numba", "sacremoses"])

if __name__ == "__main__":
    main()
