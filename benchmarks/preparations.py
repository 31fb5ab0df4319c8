"""Which text preparation gives the best translations: trainings with the preparations of the round trip.

    make preset NAME=multi30k-en-de
    python -m benchmarks.preparations --pairs 8000 --seeds 1 2 3

Corpus, model, vocabulary sizes, schedule and search are those of params.yaml. It compares the paper's Moses
rules with BPE, and SentencePiece on raw text. All are trained on the same randomly
drawn pairs, and scored by BLEU (13a) on the same test sentences, against the raw reference. The table is
printed as Markdown; --json writes it after each training.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.corpus_size import bleu_of_test_set, encode_all, train_seed
from benchmarks.round_trip import PREPARATIONS, Preparation
from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.text.corpus.files import read_folder, write_folder
from convs2s.text.sources.split import Split
from pipelines.stages import download, tokenize, truecase

COMPARED = ("moses", "sentencepiece")


@dataclass(frozen=True)
class Row:
    """A preparation, and BLEU and training epochs of each seed."""

    preparation: str
    bleu: list[float]
    epochs: list[int]


def changed(params: Params, preparation: Preparation, seeds: Sequence[int]) -> Params:
    """Return the parameters of a preparation; no pair is removed for its length, which varies with it."""
    content = params.model_dump(mode="json")
    content["tokenize"] |= preparation.changes
    content["vocabulary"]["kind"] = preparation.kind
    content["filter"] |= {"max_words": None, "max_ratio": None}
    content["train"]["seeds"] = list(seeds)
    return Params.model_validate(content)


def fetch(params: Params, pairs: int, sentences: int, data: Path) -> None:
    """Write raw text: some training pairs, all validation pairs, and some test sentences."""
    wanted: dict[Split, int | None] = {"train": pairs, "valid": None, "test": sentences}
    for split, most in wanted.items():
        download.run(params.download, split, data / "downloads", data / "all" / split)
        found = list(read_folder(data / "all" / split))
        order = range(len(found)) if most is None else np.random.default_rng(1).permutation(len(found))[:most]
        write_folder(data / "raw" / split, [found[index] for index in order])


def prepare(params: Params, data: Path, out: Path) -> None:
    """Write everything that the trainings of a preparation read."""
    languages = (params.download.source_language, params.download.target_language)
    truecase.run(params.tokenize, languages, data / "raw/train", data / "truecasers")
    for split in ("train", "valid"):
        folders = data / "truecasers", data / "raw" / split, out / "tokenized" / split
        tokenize.run(params.tokenize, languages, *folders)
    encode_all(params, out / "tokenized/train", out / "tokenized/valid", out)


def rows(params: Params, pairs: int, sentences: int, seeds: Sequence[int]) -> Iterator[list[Row]]:
    """Yield the rows so far after each training: all preparations with one seed, then with the next."""
    found = {name: Row(name, [], []) for name in COMPARED}
    own = {name: changed(params, PREPARATIONS[name], seeds) for name in COMPARED}
    with TemporaryDirectory() as folder:
        data = Path(folder)
        fetch(params, pairs, sentences, data)
        for name in COMPARED:
            prepare(own[name], data, data / name)
        for seed in seeds:
            for name in COMPARED:
                metrics, _ = train_seed(own[name], seed, data / name)
                found[name].epochs.append(metrics["epochs"])
                found[name].bleu.append(bleu_of_test_set(own[name], seed, data, data / name))
                yield [row for row in found.values() if row.bleu]


def markdown(row: Row) -> str:
    """Return a row of the table: mean and standard deviation, then each seed."""
    spread = f" ± {stdev(row.bleu):.2f}" if len(row.bleu) > 1 else ""
    seeds = ", ".join(f"{value:.2f}" for value in row.bleu)
    epochs = ", ".join(map(str, row.epochs))
    return f"| {row.preparation} | {mean(row.bleu):.2f}{spread} | {seeds} | {epochs} |"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, required=True, metavar="N", help="for training")
    parser.add_argument("--sentences", type=int, default=1000, metavar="N", help="of the test set, at most")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = parse(arguments)
    found = list[Row]()
    for found in rows(load_params(), options.pairs, options.sentences, options.seeds):
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in found], indent=2) + "\n", "utf-8")
    print("| preparation | BLEU | seeds | epochs |\n|---|---|---|---|")
    print("\n".join(map(markdown, found)))


if __name__ == "__main__":
    main()
