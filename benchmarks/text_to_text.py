"""Translation from text to text on any device: what of it is the host's work, and the speed of the whole.

    python -m benchmarks.text_to_text --model data/models/1 --source test.en --processes 4

The first table has processor microseconds a sentence, the least of all rounds: reading (text to words, words
to ids); the books that the host keeps of hypotheses, for either place; and writing (ids to words, words to
text). A search that is faster waits for these, unless several processes share them.

The second has sentences per second, in turns, with each search and with one and several processes. The last
column counts sentences whose translation is that of the first row.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.machine import in_turns, machine, make_parser, print_table, speeds_as_json, write_report
from convs2s.base.files import read_lines
from convs2s.commands.shared import pause_garbage_collection
from convs2s.config.translate import SearchPlace
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
def timed(owner: type, names: Sequence[str]) -> Iterator[list[float]]:
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
        "write: ids to words": (WordTranslator, ["_assemble"]),
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = make_parser(__doc__)
    add = parser.add_argument
    add("--model", type=Path, required=True, help="model folder")
    add("--source", type=Path, required=True, help="text, one sentence per line")
    add("--sentences", type=int, default=4096, help="lines to translate")
    add("--device", help="by default a GPU if there is one")
    add("--processes", type=int, default=1, help="for reading and writing beside a GPU")
    add("--beam-size", type=int, default=5)
    add("--precision", default="auto", choices=("auto", "float32", "bfloat16"), help="of products")
    add("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    device = find_device(options.device)
    texts = list(islice(read_lines(options.source), options.sentences))
    changes = {"beam_size": options.beam_size, "n_best": 1, "precision": options.precision}
    make = partial(load, options.model, str(device), **changes)
    about = {"machine": machine(["numba", "sacremoses"]), "device": str(device)}
    with pause_garbage_collection():  # as the command does
        translator = make()
    parts = measure_parts(translator, texts, options.rounds)
    print_table(PARTS, parts.items())
    print()
    numbers = sorted({1, options.processes})
    translators = {
        f"{search}, {number}": make(search=search, processes=number)
        for number in numbers
        for search in PLACES
    }
    translated = {name: one.translate(texts) for name, one in translators.items()}
    expected = next(iter(translated.values()))
    works = {name: partial(count_translated, one, texts) for name, one in translators.items()}
    results: list[dict[str, Any]] = [{"microseconds_per_sentence": parts}]
    rows = []
    for name, speeds in in_turns(works, options.rounds, device).items():
        same = sum(one == other for one, other in zip(translated[name], expected, strict=True))
        sentences = speeds_as_json(speeds)
        results.append({"path": name, "sentences": sentences, "same_translations": same / len(texts)})
        rows.append([name, *sentences["per_second"].values(), f"{same} of {len(texts)}"])
    print_table(WHOLE, rows)
    write_report(options.json, about, results)


def count_translated(translator: Translator, texts: list[str]) -> float:
    """Translate; return the number of texts."""
    return float(len(translator.translate(texts)))


if __name__ == "__main__":
    main()
