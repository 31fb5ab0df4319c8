"""The translation speed measured as in Table 3 (§5.3), next to the paper's figures.

    python -m benchmarks.table3 --model data/models/1 --source FILE ... --target FILE ...

The paper translates newstest2012 and newstest2013 from English to French, 3,003 and 3,000 sentences, in
batches of up to 128 sentences of equal length, with beams of 1 and 5: on a GPU, and on 48 CPU cores with 40
workers. Ours are batches of similar length, as users get them, on a GPU of up to 8 times as many sentences.
Any model and files work; the files of a side are concatenated. The settings are a GPU if there is one, one
process that uses all cores, and one single-threaded worker process per core.

Seconds are wall time from words to words: loading the model, a first batch to warm up, tokenization and BLEU
do not count; forking the workers does. Tokens are output tokens, including EOS. BLEU is of tokenized text,
mixed case; the last line identifies its test set, with lines and SHA-256, like stage evaluate.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch

from benchmarks.harness import NUMBER, PATH, Report, add_common, program, words_per_line
from convs2s.base.files import read_folder
from convs2s.base.messages import inflect
from convs2s.decode.translations import Hypothesis
from convs2s.decode.unknown_replacement import replace_unknowns
from convs2s.package.translator import Translator, load
from convs2s.score.corpus_scores import Score, tokenized_bleu
from convs2s.score.identity import SetIdentity, identify
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.split import write_split

SENTENCES = 6003
# System, beam, BLEU, seconds; GNMT's are from Wu et al. (2016), who state no beam.
PAPER: list[tuple[str, int | None, float, float]] = [
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
COLUMNS = ("system", "beam", "BLEU", "seconds", "sentences/s", "tokens/s")
SETTINGS = ("gpu", "threads", "workers")

Translated = tuple[list[str], Hypothesis]
"""Source words and the best hypothesis."""


class Setting(NamedTuple):
    """Where it runs: in this process with some threads, or in single-threaded worker processes."""

    system: str
    device: str
    threads: int
    workers: int


def translate(loaded: Translator, pairs: Sequence[tuple[str, str]], threads: int) -> tuple[float, float, int]:
    """Translate the sources; return BLEU, seconds, and the number of output tokens."""
    words = [loaded.source.tokenize(source) for source, _ in pairs]
    torch.set_num_threads(threads)
    loaded.words.translate(words[-loaded.words.batch_sentences :], keep_attention=False)
    begin = time.perf_counter()
    translated = loaded.words.translate(words, keep_attention=False)
    seconds = time.perf_counter() - begin
    best = [hypotheses[0] for hypotheses in translated]
    bleu = quality(loaded, list(zip(words, best, strict=True)), [target for _, target in pairs]).value
    return bleu, seconds, sum(len(hypothesis.tokens) for hypothesis in best)


def quality(loaded: Translator, translated: Sequence[Translated], references: Sequence[str]) -> Score:
    """Return the BLEU of translations, with unknown words replaced if the model folder enables that."""
    hypotheses = []
    for source, best in translated:
        words = best.words
        if loaded.dictionary is not None:
            words, _ = replace_unknowns(source, words, best.unknowns, loaded.dictionary)
        hypotheses.append(" ".join(words))
    return tokenized_bleu(hypotheses, [" ".join(loaded.target.tokenize(line)) for line in references])


def read_test_set(
    sources: Sequence[Path], targets: Sequence[Path]
) -> tuple[list[tuple[str, str]], SetIdentity]:
    """Return the sentence pairs of all files, in order, and the identity of the test set.

    Files are read as in stage download, so that the same test set has the same hash, with the same errors.
    """
    with TemporaryDirectory() as folder:
        split = Path(folder, "test")
        write_split(
            [file_part([*files], None, ("en", "de")) for files in zip(sources, targets, strict=True)], split
        )
        return list(read_folder(split)), identify(split)


def list_cells(
    system: str, beam_size: int | None, bleu: float, seconds: float, sentences: int, tokens: int | None = None
) -> list[object]:
    """Return a row of the table; the paper does not say how many tokens its translations have."""
    speeds = [float(units / seconds) if units else "" for units in (sentences, tokens)]
    return [system, "" if beam_size is None else beam_size, f"{bleu:.2f}", f"{seconds:,.5g}", *speeds]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the test set, and where to run."""
    cores = os.cpu_count() or 1
    add = parser.add_argument
    add_common(parser, "model", "beam_sizes")
    add("--source", **PATH, nargs="+", metavar="FILE", help="sentences to translate")
    add("--target", **PATH, nargs="+", metavar="FILE", help="their translations")
    add("--batch-sentences", **NUMBER, default=128, help="maximum sentences per batch")
    add("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    add("--threads", **NUMBER, default=cores, help=f"per process; default {cores}")
    add("--workers", **NUMBER, default=cores, help=f"default {cores}; the paper's: 40")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Print the paper's rows, then add one for every beam and setting."""
    pairs, test_set = read_test_set(options.source, options.target)
    threads, workers = options.threads, options.workers
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    settings = {
        "gpu": Setting(f"ours, GPU ({gpu})", "cuda", threads, 0),
        "threads": Setting(f"ours, CPU, {inflect(threads, 'thread')}", "cpu", threads, 0),
        "workers": Setting(f"ours, CPU, {inflect(workers, 'worker')}", "cpu", 1, workers),
    }
    signature = tokenized_bleu(["a"], ["a"]).signature
    report.note(test_set=str(test_set), words_per_line=words_per_line([source for source, _ in pairs]))
    report.note(signatures={"bleu": signature})
    report.table(COLUMNS)
    for system, beam, bleu, seconds in PAPER:
        report.print_row(list_cells(system, beam, bleu, seconds, SENTENCES))
    for beam_size in options.beam_sizes:
        for setting in [settings[name] for name in options.settings if name != "gpu" or gpu]:
            loaded = load(
                options.model,
                setting.device,
                processes=max(1, setting.workers),
                beam_size=beam_size,
                n_best=1,
                batch_sentences=options.batch_sentences,
            )
            bleu, seconds, tokens = translate(loaded, pairs, setting.threads)
            report.add(
                *list_cells(setting.system, beam_size, bleu, seconds, len(pairs), tokens),
                system=setting.system, beam_size=beam_size, bleu=bleu, seconds=seconds, sentences=len(pairs),
                tokens=tokens,
            )  # fmt: skip
    print(f"\nThe paper's: newstest2012 and newstest2013, {SENTENCES:,} sentences.")
    print(f"Ours: {test_set}; BLEU {signature}.")


main = program(__doc__, add_options, measure, packages=["numba"])

if __name__ == "__main__":
    main()
