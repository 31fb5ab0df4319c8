"""Speed of translation on the CPU: the engine compared with the plain model, in all precisions that are fast.

    python -m benchmarks.translate --model data/models/1 --source test.en --beam-sizes 1 5

translates lines of text with each in turns, with the model loaded and warmed up; splitting and joining
words counts. It prints sentences per second of processor time (median over rounds, minimum and maximum), how
many hypotheses equal those of the plain model, and the share of the speed of a large matrix product: at 100 %
a search would consist of matrix products only. With --candidates, a file from `convs2s candidates`, there is
also int8 with vocabulary selection; its share may exceed 100 %, because it counts products of the whole
vocabulary.

--processes 2 runs the engine in two processes that share the model, and the others on two threads;
speeds are then by wall time, so the machine must be otherwise idle.

If fairseq is installed, an imported model can be compared with it, on tokenized text:

    python -m benchmarks.translate --model imported --source tokens.en \
        --fairseq model.pt dict.en.txt dict.de.txt

Import with --max-length-of batch so that all hypotheses have fairseq's length limits.
"""

import argparse
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.fairseq_peer import FairseqTranslator, fairseq_translator
from benchmarks.machine import (
    Speed,
    counted_flop,
    fast_dtypes,
    in_turns,
    machine,
    print_table,
    product_peaks,
    speeds_as_json,
    write_report,
)
from convs2s.base.files import read_lines
from convs2s.commands.shared import pause_garbage_collection
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.engine.decode.linear_maps import multiply
from convs2s.model.storage import load_model
from convs2s.package.translator import Translator, load

Way = Translator | FairseqTranslator
CPU = torch.device("cpu")
PLAIN = "plain float32"
COLUMNS = ("beam, path", "sentences/s", "lowest", "highest", "same hypotheses", "share of products")


def main() -> None:
    """Measure, print and write."""
    options = parse()
    torch.set_num_threads(max(options.threads, options.processes))
    texts = list(islice(read_lines(options.source), options.sentences))
    peaks = product_peaks(CPU, fast_dtypes(CPU)) | {"int8": int8_peak()}
    about = {"machine": machine(["numba"]), "product_operations_per_second": peaks}
    print(", ".join(f"{key} {value}" for key, value in about["machine"].items()))
    results = []
    for beam_size in options.beam_sizes:
        with pause_garbage_collection():  # as the command does
            ways = translators(options.model, beam_size, options.candidates, options.processes)
        of_peer = peer(options.fairseq, beam_size, ways[PLAIN]) if options.fairseq else {}
        flop = counted_flop(partial(work, ways[PLAIN], texts))
        speeds = in_turns(
            {name: partial(work, way, texts) for name, way in (of_peer | ways).items()}, options.rounds, CPU
        )
        wanted = tokens(ways[PLAIN], texts)
        timed_by = "per_processor_second" if options.processes == 1 else "per_second"
        for name, way in (of_peer | ways).items():
            same = sum(one == other for one, other in zip(tokens(way, texts), wanted, strict=True))
            seconds = flop / len(texts) / peaks[name.split()[1]]
            results.append(row(beam_size, name, speeds[name], same / len(texts), seconds, timed_by))
    show(results, timed_by)
    if options.json:
        write_report(options.json, about, results)


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.translate")
    parser.add_argument("--model", type=Path, required=True, help="model folder, possibly an imported one")
    parser.add_argument("--source", type=Path, required=True, help="text, one sentence per line")
    parser.add_argument("--sentences", type=int, default=1000, help="lines to translate")
    parser.add_argument("--candidates", type=Path, help="file of convs2s candidates")
    files = ("CHECKPOINT", "SOURCE_DICT", "TARGET_DICT")
    parser.add_argument(
        "--fairseq", type=Path, nargs=3, metavar=files, help="what the model was imported from"
    )
    parser.add_argument("--beam-sizes", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="for our compiled loops")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def translators(
    model: Path, beam_size: int, candidates: Path | None, processes: int
) -> dict[str, Translator]:
    """Return the translators to compare, by name: the path, then the precision of products."""
    ways = {PLAIN: load(model, "cpu", beam_size=beam_size, n_best=1)}
    ways[PLAIN].words.model = StepwiseModel(load_model(model))
    for precision in (*fast_dtypes(CPU), "int8"):
        changes: dict[str, Any] = {
            "beam_size": beam_size, "n_best": 1, "precision": precision, "processes": processes,
        }  # fmt: skip
        ways[f"engine {precision}"] = load(model, "cpu", **changes)
        if precision == "int8" and candidates is not None:
            ways["selected int8"] = load(model, "cpu", candidates=candidates, **changes)
    return ways


def peer(files: list[Path], beam_size: int, ours: Translator) -> dict[str, FairseqTranslator]:
    """Return fairseq's search with the same beam and batches."""
    checkpoint, *dictionaries = files
    size = ours.words.params.batch_sentences
    return {"fairseq float32": fairseq_translator(checkpoint, dictionaries, beam_size, size)}


def int8_peak() -> float:
    """Return the operations per second of a large matrix product in 8-bit integers."""
    rows = torch.randint(1, 128, (1024, 1024), dtype=torch.uint8)
    packed = torch.ops.onednn.qlinear_prepack(torch.ones(1024, 1024, dtype=torch.int8), None)
    seconds = []
    for _ in range(20):
        start = time.process_time()
        multiply(rows, packed, 1024, 64)
        seconds.append(time.process_time() - start)
    return 2 * 1024**3 / min(seconds) * torch.get_num_threads()


def work(translator: Way, texts: list[str]) -> float:
    """Translate; return the number of sentences."""
    return float(len(translator.translate(texts)))


def tokens(translator: Way, texts: list[str]) -> list[list[str]]:
    """Return the tokens of each best hypothesis."""
    if isinstance(translator, FairseqTranslator):
        return [text.split() for text in translator.translate(texts)]
    return [best.tokens for best, *_ in translator.translate_n_best(texts)]


def row(
    beam_size: int, name: str, speeds: list[Speed], same: float, seconds: float, timed_by: str
) -> dict[str, Any]:
    """Return a result; `seconds` is the time for the products of a sentence at full speed."""
    sentences = speeds_as_json(speeds)
    return {
        "beam_size": beam_size, "path": name, "sentences": sentences, "same_hypotheses": same,
        "share_of_products": sentences[timed_by]["median"] * seconds,
    }  # fmt: skip


def show(results: list[dict[str, Any]], timed_by: str) -> None:
    """Print the table."""
    rows = []
    for one in results:
        speed = one["sentences"][timed_by]
        rows.append((
            f"{one['beam_size']}, {one['path']}", speed["median"], speed["lowest"], speed["highest"],
            f"{one['same_hypotheses']:.1%}", f"{one['share_of_products']:.0%}",
        ))  # fmt: skip
    print_table(COLUMNS, rows)


if __name__ == "__main__":
    main()
