"""Speed of translation on the CPU: the engine compared with the plain model, in all precisions that are fast.

    python -m benchmarks.translate --model data/models/1 --source test.en --beam-sizes 1 5

translates lines drawn from the text with each in turns, with the model loaded and warmed up; splitting and
joining words counts. It prints sentences per second of processor time (median over rounds, minimum and
maximum), how many hypotheses equal those of the plain model, and the share of the speed of a large matrix
product: at 100 % a search would consist of matrix products only. With --candidates, a file from `convs2s
candidates`, there is also int8 with vocabulary selection; its share may exceed 100 %, because it counts
products of the whole vocabulary.

With --lines-at-once 1, each line is translated by itself, as for somebody who waits for it.

--processes 2 runs the engine in two processes that share the model, and the others on two threads;
speeds are then by wall time, so the machine must be otherwise idle.

If fairseq is installed, an imported model can be compared with it, on tokenized text:

    python -m benchmarks.translate --model imported --source tokens.en \
        --fairseq model.pt dict.en.txt dict.de.txt

Import with --max-length-of batch so that all hypotheses have fairseq's length limits.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.fairseq_peer import FairseqTranslator, fairseq_translator
from benchmarks.harness import (
    Report,
    add_common,
    fast_dtypes,
    flop_per_unit,
    peak,
    product_peak,
    program,
    speeds_in_turns,
)
from convs2s.commands.shared import pause_garbage_collection
from convs2s.engine.decode.linear_maps import pack
from convs2s.model.storage import load_model
from convs2s.package.translator import Translator, load
from convs2s.search.stepwise_model import StepwiseModel

Way = Translator | FairseqTranslator
CPU = torch.device("cpu")
PLAIN = "plain float32"
COLUMNS = ("beam, path", "sentences/s", "lowest", "highest", "same hypotheses", "share of products")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is translated, and with what."""
    add_common(parser, "model", "source", "sentences", "beam_sizes", "rounds", "threads", "processes")
    parser.add_argument("--lines-at-once", type=int, help="lines of each call (default: all)")
    parser.add_argument("--candidates", type=Path, help="file of convs2s candidates")
    files = ("CHECKPOINT", "SOURCE_DICT", "TARGET_DICT")  # that the model was imported from
    parser.add_argument("--fairseq", type=Path, nargs=3, metavar=files)


def measure(options: argparse.Namespace, report: Report) -> None:
    """Measure all ways to translate, by beam size."""
    torch.set_num_threads(max(options.threads, options.processes))
    report.about["machine"]["threads"] = torch.get_num_threads()
    texts = report.draw(options.source, options.sentences)
    size = options.lines_at_once or len(texts)
    calls = [texts[start : start + size] for start in range(0, len(texts), size)]
    peaks: dict[str, float] = {name: product_peak(name, CPU) for name in fast_dtypes(CPU)}
    peaks["int8"] = int8_peak()
    report.note(product_operations_per_second=peaks)
    report.table(COLUMNS)
    timed_by = "per_processor_second" if options.processes == 1 else "per_second"
    for beam_size in options.beam_sizes:
        with pause_garbage_collection():  # as the command does
            ours = translators(options.model, beam_size, options.candidates, options.processes)
        plain = ours[PLAIN]
        ways = dict[str, Way](ours)
        if options.fairseq:
            checkpoint, *dictionaries = options.fairseq
            batch_sentences = plain.words.params.batch_sentences
            peer = fairseq_translator(checkpoint, dictionaries, beam_size, batch_sentences)
            ways = {"fairseq float32": peer, **ways}
        flop = flop_per_unit(partial(work, plain, calls))  # of a sentence
        works = {name: partial(work, way, calls) for name, way in ways.items()}
        expected = tokens(plain, texts)
        for name, speeds in speeds_in_turns(works, options.rounds, CPU).items():
            found = expected if name == PLAIN else tokens(ways[name], texts)
            same = sum(hypothesis == wanted for hypothesis, wanted in zip(found, expected, strict=True))
            _, precision = name.split()
            seconds = flop / peaks[precision]  # of a sentence's products at full speed
            equal, share = same / len(texts), speeds[timed_by]["median"] * seconds
            report.add(
                f"{beam_size}, {name}", *speeds[timed_by].values(), f"{equal:.1%}", f"{share:.0%}",
                beam_size=beam_size, path=name, sentences=speeds, same_hypotheses=equal,
                share_of_products=share,
            )  # fmt: skip


def translators(
    model: Path, beam_size: int, candidates: Path | None, processes: int
) -> dict[str, Translator]:
    """Return the translators to compare, by name: the path, then the precision of products."""
    ways = {PLAIN: load(model, "cpu", beam_size=beam_size, n_best=1, split_sentences=False)}
    ways[PLAIN].words.model = StepwiseModel(load_model(model))
    for precision in (*fast_dtypes(CPU), "int8"):
        changes: dict[str, Any] = {
            "beam_size": beam_size, "n_best": 1, "precision": precision, "processes": processes,
            "split_sentences": False,  # as the peer
        }  # fmt: skip
        ways[f"engine {precision}"] = load(model, "cpu", **changes)
        if precision == "int8" and candidates is not None:
            ways["selected int8"] = load(model, "cpu", candidates=candidates, **changes)
    return ways


def int8_peak() -> float:
    """Return the operations per second of a large matrix product in 8-bit integers."""
    rows = torch.randint(1, 128, (1024, 1024), dtype=torch.uint8)
    multiply = pack(torch.ones(1024, 1024, dtype=torch.int8), 64)

    def multiply_once() -> float:
        multiply(rows)
        return 2.0 * 1024**3

    return peak(multiply_once, CPU)


def work(translator: Way, calls: Sequence[list[str]]) -> float:
    """Translate the lines of each call; return the number of sentences."""
    return float(sum(len(translator.translate(lines)) for lines in calls))


def tokens(translator: Way, texts: list[str]) -> list[list[str]]:
    """Return the tokens of each best hypothesis."""
    if isinstance(translator, FairseqTranslator):
        return [text.split() for text in translator.translate(texts)]
    return [best.tokens for best, *_ in translator.translate_n_best(texts)]


main = program(__doc__, add_options, measure, packages=["numba"])

if __name__ == "__main__":
    main()
