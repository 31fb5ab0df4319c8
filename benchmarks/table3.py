"""The translation speed measured as in Table 3 (§5.3), next to the paper's figures.

    python -m benchmarks.table3 --model data/models/1 --source FILE ... --target FILE ...

The paper translates newstest2012 and newstest2013 from English to French, 3,003 and 3,000 sentences, in
batches of up to 128 sentences of equal length, with beams of 1 and 5: on a GPU, and on 48 CPU cores with 40
workers. sacreBLEU, which is installed with convs2s, fetches them from statmt.org:

    sacrebleu -t wmt12 -l en-fr --echo src > newstest2012.en
    sacrebleu -t wmt12 -l en-fr --echo ref > newstest2012.fr
    sacrebleu -t wmt13 -l en-fr --echo src > newstest2013.en
    sacrebleu -t wmt13 -l en-fr --echo ref > newstest2013.fr
    files="--source newstest2012.en newstest2013.en --target newstest2012.fr newstest2013.fr"
    python -m benchmarks.table3 --model data/models/1 $files

Any model and files work; the files of a side are concatenated. The settings are a GPU if there is one, one
process that uses all cores, and one single-threaded worker process per core.

Seconds are wall time from words to words: loading the model, a first batch to warm up, tokenization and BLEU
do not count; forking the workers does. Tokens are output tokens, including EOS. BLEU is of tokenized text,
mixed case; the last line identifies its test set, with lines and SHA-256, like stage evaluate. The share of
products compares the FLOP of a token, counted over the middle batch, with the speed of a large float32 matrix
product on as many threads. --json FILE writes our rows, machine and versions to a file.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.machine import counted_flop, machine, product_peak
from convs2s.decode.parallel import run_in_processes
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.decode.translations import Hypothesis
from convs2s.decode.unknown_replacement import replace_unknowns
from convs2s.model.loading import load_model
from convs2s.package.translator import Translator, load
from convs2s.score.corpus_scores import Score, tokenized_bleu
from convs2s.score.identity import SetIdentity, identify
from convs2s.text.corpus.files import read_folder
from convs2s.text.counted import counted
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.split import write_split

SENTENCES = 6003
# System, beam, BLEU, seconds; GNMT's are from Wu et al. (2016), who state no beam.
PAPER: list[tuple[str, int | None, float, int]] = [
    ("GNMT, GPU (K80)", None, 31.20, 3028),
    ("GNMT, CPU, 88 cores", None, 31.20, 1322),
    ("GNMT, TPU", None, 31.21, 384),
    ("ConvS2S, GPU (K40)", 1, 33.45, 327),
    ("ConvS2S, GPU (M40)", 1, 33.45, 221),
    ("ConvS2S, GPU (GTX-1080ti)", 1, 33.45, 142),
    ("ConvS2S, CPU, 48 cores", 1, 33.45, 142),
    ("ConvS2S, GPU (K40)", 5, 34.10, 587),
    ("ConvS2S, CPU, 48 cores", 5, 34.10, 482),
    ("ConvS2S, GPU (M40)", 5, 34.10, 406),
    ("ConvS2S, GPU (GTX-1080ti)", 5, 34.10, 256),
]
COLUMNS = (
    "system", "beam", "bleu", "seconds", "sentences_per_second", "tokens_per_second", "share_of_products",
)  # fmt: skip
SETTINGS = ("gpu", "threads", "workers")

Batch = list[list[str]]
Translated = tuple[list[str], Hypothesis]
"""Source words and the best hypothesis."""


@dataclass(frozen=True)
class Job:
    """The translator: a model folder, on a device, with a beam and a batch size."""

    model: Path
    device: str
    beam_size: int
    batch_sentences: int


@dataclass(frozen=True)
class Setting:
    """Where it runs: in this process with some threads, or in single-threaded processes with its weights."""

    name: str
    device: str
    threads: int
    workers: int


@cache
def translator(job: Job) -> Translator:
    """Return the job's translator, which each process loads once."""
    return load(job.model, job.device, beam_size=job.beam_size, n_best=1, batch_sentences=job.batch_sentences)


def translate(job: Job, batch: Batch) -> list[Translated]:
    """Translate sentences of equal length, given in words."""
    found = translator(job).words.translate(batch, keep_attention=False)
    return [(words, hypotheses[0]) for words, hypotheses in zip(batch, found, strict=True)]


def timed(job: Job, setting: Setting, batches: Sequence[Batch]) -> tuple[float, list[list[Translated]]]:
    """Translate all batches; return the seconds, and the translations of each."""
    torch.set_num_threads(setting.threads)
    translate(job, batches[-1])
    done: list[list[Translated]] = [[] for _ in batches]
    begin = time.perf_counter()
    for number, found in run_in_processes(partial(translate, job), batches, max(1, setting.workers)):
        done[number] = found
    return time.perf_counter() - begin, done


def equal_lengths(lengths: Iterable[int], size: int) -> list[list[int]]:
    """Return sentence indices in batches of equal length, at most `size` each, longest sentences first.

    Short ones come last so that workers finish at about the same time.
    """
    groups: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        groups[length].append(index)
    ordered = [groups[length] for length in sorted(groups, reverse=True)]
    return [group[start : start + size] for group in ordered for start in range(0, len(group), size)]


def quality(
    job: Job, batches: Sequence[list[int]], done: Sequence[list[Translated]], references: Sequence[str]
) -> Score:
    """Return the BLEU of the translations, with unknown words replaced if the model folder enables that."""
    used = translator(job)
    hypotheses = [""] * len(references)
    for indices, sentences in zip(batches, done, strict=True):
        for index, (source, best) in zip(indices, sentences, strict=True):
            words = best.words
            if used.dictionary is not None:
                words, _ = replace_unknowns(source, words, best.unknowns, used.dictionary)
            hypotheses[index] = " ".join(words)
    return tokenized_bleu(hypotheses, [" ".join(used.target.tokenize(line)) for line in references])


def settings(wanted: Sequence[str], threads: int, workers: int) -> list[Setting]:
    """Return the requested settings that this machine supports."""
    found = []
    if "gpu" in wanted and torch.cuda.is_available():
        found.append(Setting(f"ours, GPU ({torch.cuda.get_device_name()})", "cuda", threads, 0))
    if "threads" in wanted:
        found.append(Setting(f"ours, CPU, {counted(threads, 'thread')}", "cpu", threads, 0))
    if "workers" in wanted:
        found.append(Setting(f"ours, CPU, {counted(workers, 'worker')}", "cpu", 1, workers))
    return found


def flop_of_token(job: Job, batch: Batch) -> float:
    """Return the FLOP of products per output token of a batch, counted on the plain PyTorch path."""
    counting = load(job.model, job.device, beam_size=job.beam_size, n_best=1)
    counting.words.model = StepwiseModel(load_model(job.model, counting.words.device))
    done: list[list[Hypothesis]] = []
    flop = counted_flop(lambda: done.extend(counting.words.translate(batch, keep_attention=False)))
    return flop / max(1, sum(len(hypotheses[0].tokens) for hypotheses in done))


def peak(setting: Setting) -> float:
    """Return the FLOP/s of large float32 products on all threads of a setting."""
    torch.set_num_threads(setting.threads)
    return product_peak(torch.float32, torch.device(setting.device)) * max(1, setting.workers)


def row(
    name: str, beam: int | None, bleu: float, seconds: float, sentences: int,
    tokens: int | None = None, share: float | None = None,
) -> str:  # fmt: skip
    """Return a line of the table; the paper gives whole seconds."""
    speed = "" if tokens is None else f"{tokens / seconds:,.0f}"
    shown = f"{seconds:,}" if isinstance(seconds, int) else f"{seconds:,.1f}"
    cells = [name, "" if beam is None else str(beam), f"{bleu:.2f}", shown, f"{sentences / seconds:,.1f}"]
    return "| " + " | ".join([*cells, speed, "" if share is None else f"{100 * share:.3g}%"]) + " |"


def cells(line: str) -> list[str]:
    """Return the cells of a line of the table, numbers without commas."""
    name, *numbers = (cell.strip() for cell in line.strip("|").split("|"))
    return [name, *(number.replace(",", "") for number in numbers)]


def read(sources: Sequence[Path], targets: Sequence[Path]) -> tuple[list[tuple[str, str]], SetIdentity]:
    """Return the sentence pairs of all files, in order, and the identity of the test set.

    Files are read as in stage download, so that the same test set has the same hash.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if files are empty, or do not match up.
    """
    if len(sources) != len(targets):
        raise ValueError(
            f"found {counted(len(sources), 'file')} of --source but {len(targets)} of --target; "
            "wanted equal numbers."
        )
    with TemporaryDirectory() as folder:
        split = Path(folder, "test")
        write_split([file_part([*files], None) for files in zip(sources, targets, strict=True)], split)
        return list(read_folder(split)), identify(split)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--model", type=Path, required=True, metavar="DIR", help="model folder")
    add("--source", type=Path, required=True, nargs="+", metavar="FILE", help="sentences to translate")
    add("--target", type=Path, required=True, nargs="+", metavar="FILE", help="their translations")
    add("--beams", type=int, nargs="+", default=[1, 5], metavar="B")
    add("--batch-sentences", type=int, default=128, metavar="N", help="maximum sentences per batch")
    add("--json", type=Path, metavar="FILE", help="also write our rows, test set and signature to FILE")
    add("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    add("--threads", type=int, default=cores, metavar="N", help=f"per process; default {cores}")
    add(
        "--workers", type=int, default=cores, metavar="N", help=f"processes; default {cores}, the paper's: 40"
    )
    return parser.parse_args(arguments)


def measure(job: Job, setting: Setting, pairs: Sequence[tuple[str, str]]) -> str:
    """Translate the sources; return the row of the table."""
    used = translator(job)
    words = [used.source.tokenize(source) for source, _ in pairs]
    batches = equal_lengths((len(used.words.source.encode(one)) for one in words), job.batch_sentences)
    seconds, done = timed(job, setting, [[words[i] for i in batch] for batch in batches])
    tokens = sum(len(best.tokens) for batch in done for _, best in batch)
    score = quality(job, batches, done, [target for _, target in pairs])
    middle = [words[i] for i in batches[len(batches) // 2]]
    share = flop_of_token(job, middle) * tokens / seconds / peak(setting)
    return row(setting.name, job.beam_size, score.value, seconds, len(pairs), tokens, share)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the paper's rows, then a row for every setting and beam.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if files do not match up, or only a GPU is requested and there is none.
    """
    options = parse(arguments)
    pairs, test_set = read(options.source, options.target)
    places = settings(options.settings, options.threads, options.workers)
    if not places:
        raise ValueError("PyTorch sees no GPU here; wanted one, or --settings threads workers.")
    print("| system | beam | BLEU | seconds | sentences/s | tokens/s | share of products |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, beam, bleu, seconds in PAPER:
        print(row(name, beam, bleu, seconds, SENTENCES))
    measured = []
    for beam in options.beams:
        for place in places:
            job = Job(options.model, place.device, beam, options.batch_sentences)
            measured.append(measure(job, place, pairs))
            print(measured[-1], flush=True)
    signature = tokenized_bleu(["a"], ["a"]).signature
    if options.json:
        rows = [dict(zip(COLUMNS, cells(line), strict=True)) for line in measured]
        content = {
            "machine": machine(["numba"]),
            "rows": rows,
            "signatures": {"bleu": signature},
            "test_set": str(test_set),
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"\nThe paper's: newstest2012 and newstest2013, {SENTENCES:,} sentences.")
    print(f"Ours: {test_set}; BLEU {signature}.")


if __name__ == "__main__":
    main()
