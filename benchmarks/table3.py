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

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.machine import machine, make_parser, print_head, print_row, write_report
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
COLUMNS = ("system", "beam", "BLEU", "seconds", "sentences/s", "tokens/s")
SETTINGS = ("gpu", "threads", "workers")

Translated = tuple[list[str], Hypothesis]
"""Source words and the best hypothesis."""


@dataclass(frozen=True)
class Place:
    """Where it runs: in this process with some threads, or in single-threaded worker processes."""

    system: str
    device: str
    threads: int
    workers: int

    def load(self, model: Path, beam_size: int, batch_sentences: int) -> Translator:
        """Return the translator of a model folder that runs there."""
        return load(
            model,
            self.device,
            processes=max(1, self.workers),
            beam_size=beam_size,
            n_best=1,
            batch_sentences=batch_sentences,
        )


@dataclass(frozen=True)
class Result:
    """A row of the table."""

    system: str
    beam_size: int | None
    bleu: float
    seconds: float
    sentences: int
    tokens: int | None = None  # of the output; the paper does not say

    def cells(self) -> list[object]:
        """Return the cells of the row."""
        beam = "" if self.beam_size is None else self.beam_size
        speeds = [float(units / self.seconds) if units else "" for units in (self.sentences, self.tokens)]
        return [self.system, beam, f"{self.bleu:.2f}", f"{self.seconds:,.5g}", *speeds]


def measure(loaded: Translator, place: Place, pairs: Sequence[tuple[str, str]]) -> Result:
    """Translate the sources; return the row."""
    words = [loaded.source.tokenize(source) for source, _ in pairs]
    torch.set_num_threads(place.threads)
    loaded.words.translate(words[-loaded.words.batch_sentences :], keep_attention=False)
    begin = time.perf_counter()
    translated = loaded.words.translate(words, keep_attention=False)
    seconds = time.perf_counter() - begin
    best = [hypotheses[0] for hypotheses in translated]
    bleu = quality(loaded, list(zip(words, best, strict=True)), [target for _, target in pairs]).value
    tokens = sum(len(hypothesis.tokens) for hypothesis in best)
    return Result(place.system, loaded.words.params.beam_size, bleu, seconds, len(pairs), tokens)


def quality(loaded: Translator, translated: Sequence[Translated], references: Sequence[str]) -> Score:
    """Return the BLEU of translations, with unknown words replaced if the model folder enables that."""
    hypotheses = []
    for source, best in translated:
        words = best.words
        if loaded.dictionary is not None:
            words, _ = replace_unknowns(source, words, best.unknowns, loaded.dictionary)
        hypotheses.append(" ".join(words))
    return tokenized_bleu(hypotheses, [" ".join(loaded.target.tokenize(line)) for line in references])


def read(sources: Sequence[Path], targets: Sequence[Path]) -> tuple[list[tuple[str, str]], SetIdentity]:
    """Return the sentence pairs of all files, in order, and the identity of the test set.

    Files are read as in stage download, so that the same test set has the same hash, with the same errors.
    """
    with TemporaryDirectory() as folder:
        split = Path(folder, "test")
        write_split(
            [file_part([*files], None, ("en", "de")) for files in zip(sources, targets, strict=True)], split
        )
        return list(read_folder(split)), identify(split)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the paper's rows, then a row for every setting and beam."""
    cores = os.cpu_count() or 1
    parser = make_parser(__doc__)
    add = parser.add_argument
    add("--model", type=Path, required=True, metavar="DIR", help="model folder")
    add("--source", type=Path, required=True, nargs="+", metavar="FILE", help="sentences to translate")
    add("--target", type=Path, required=True, nargs="+", metavar="FILE", help="their translations")
    add("--beams", type=int, nargs="+", default=[1, 5], metavar="B")
    add("--batch-sentences", type=int, default=128, metavar="N", help="maximum sentences per batch")
    add("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    add("--threads", type=int, default=cores, metavar="N", help=f"per process; default {cores}")
    add("--workers", type=int, default=cores, metavar="N", help=f"default {cores}; the paper's: 40")
    options = parser.parse_args(arguments)
    pairs, test_set = read(options.source, options.target)
    threads, workers = options.threads, options.workers
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    places = {
        "gpu": Place(f"ours, GPU ({gpu})", "cuda", threads, 0),
        "threads": Place(f"ours, CPU, {inflect(threads, 'thread')}", "cpu", threads, 0),
        "workers": Place(f"ours, CPU, {inflect(workers, 'worker')}", "cpu", 1, workers),
    }
    chosen = [places[name] for name in options.settings if name != "gpu" or gpu]
    print_head(COLUMNS)
    for system, beam, bleu, seconds in PAPER:
        print_row(Result(system, beam, bleu, seconds, SENTENCES).cells())
    results = []
    for beam_size in options.beams:
        for place in chosen:
            loaded = place.load(options.model, beam_size, options.batch_sentences)
            result = measure(loaded, place, pairs)
            print_row(result.cells())
            results.append(result)
    signature = tokenized_bleu(["a"], ["a"]).signature
    about = {"machine": machine(["numba"]), "test_set": str(test_set), "signatures": {"bleu": signature}}
    write_report(options.json, about, [asdict(result) for result in results])
    print(f"\nThe paper's: newstest2012 and newstest2013, {SENTENCES:,} sentences.")
    print(f"Ours: {test_set}; BLEU {signature}.")


if __name__ == "__main__":
    main()
