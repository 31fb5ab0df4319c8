"""The best model size by number of pairs: trainings on parts of the corpus of params.yaml.

    make preset NAME=multi30k-en-de
    python -m benchmarks.corpus_size --pairs 1000 4000 --models "4 x 128, 3 x 128" --pieces 1000 2000

Text preparation, schedule and search are those of params.yaml. Each row is a training, with its first
seed, on randomly drawn pairs, the same for all models, scored on the whole test set. Rows are printed as
Markdown as soon as they are done, and written with --json.
"""

import argparse
import itertools
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import numpy as np

from convs2s.base.files import read_folder, read_json, read_lines, write_folder, write_json
from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.config.section import NOTHING
from convs2s.score.corpus_scores import bleu, bleu_tokenizer
from convs2s.text.sources.split import Split
from convs2s.train.run import train_model
from pipelines.stages import (
    candidates,
    download,
    encode,
    filter,
    replace,
    tokenize,
    translate,
    truecase,
    vocabulary,
)

NUMBER = re.compile(r"(\d+) x (\d+), (\d+) x (\d+)")


@dataclass(frozen=True)
class Variant:
    """The settings that vary between rows.

    Attributes:
        pairs: of the training data, before filtering.
        model: depth and width of encoder and decoder, such as "4 x 256, 3 x 256".
        pieces: of the joint vocabulary.
    """

    pairs: int
    model: str
    pieces: int
    dropout: float


@dataclass(frozen=True)
class Row:
    """A variant, and the results of its training; perplexity is the best on the validation set."""

    variant: Variant
    epochs: int
    perplexity: float
    bleu: float
    minutes: float


def change_params(params: Params, variant: Variant) -> Params:
    """Return the parameters of a variant; embeddings are as wide as the first layer."""
    found = NUMBER.fullmatch(variant.model)
    if found is None:
        raise ValueError(f'--models: expected sizes such as "4 x 256, 3 x 256", found {variant.model!r}')
    encoder, width, decoder, decoder_width = map(int, found.groups())
    content = params.model_dump(mode="json")
    content["model"] |= {
        "embedding_size": width,
        "output_embedding_size": width,
        "encoder_widths": [width] * encoder,
        "encoder_kernels": [3] * encoder,
        "decoder_widths": [decoder_width] * decoder,
        "decoder_kernels": [3] * decoder,
        "attention": [True] * decoder,
    }
    content["vocabulary"] |= {"source_size": variant.pieces, "target_size": variant.pieces}
    content["train"]["dropout"] = variant.dropout
    return Params.model_validate(content)


def fetch(params: Params, data: Path) -> None:
    """Write the raw and the tokenized text of all splits."""
    languages = params.languages
    for split in get_args(Split):
        download.run(params.download, languages, split, data / "downloads", data / "raw" / split)
        if split == "train":
            truecase.run(params.tokenize, languages, Path(NOTHING), data / "raw/train", data / "truecasers")
        if split != "test":
            folders = data / "truecasers", data / "raw" / split, data / "tokenized" / split
            tokenize.run(params.tokenize, languages, *folders)


def train_and_score(params: Params, variant: Variant, data: Path, out: Path) -> Row:
    """Train on a random part of the pairs and score the model on the test set."""
    pairs = list(read_folder(data / "tokenized/train"))
    chosen = np.random.default_rng(1).permutation(len(pairs))[: variant.pairs]
    write_folder(out / "part", [pairs[index] for index in chosen])
    languages = params.languages
    write_folder(out / "none", [])
    folders = data / "raw", out / "part", out / "none", data / "tokenized/valid", out / "filtered"
    filter.run(params.filter, params.augment, languages, *folders)
    vocabulary.run(params.vocabulary, Path(NOTHING), out / "filtered/train", out / "vocabulary")
    for split in ("train", "valid"):
        encode.run(out / "vocabulary", out / "filtered" / split, out / "encoded" / split)
    candidates.run(params.align, params.candidates, out / "encoded/train", out / "candidates")
    seed = params.seeds[0]
    inputs = out / "encoded", out / "vocabulary", out / "candidates"
    begin = time.perf_counter()
    sections = params.model, params.train, params.run
    train_model(*sections, seed, *inputs, out / "work", out / "trained" / str(seed))
    minutes = (time.perf_counter() - begin) / 60
    metrics = read_json(out / "trained" / str(seed) / "metrics.json")
    score = bleu_of_test_set(params, seed, data, out)
    return Row(variant, metrics["epochs"], metrics["validation_perplexity"], score, minutes)


def bleu_of_test_set(params: Params, seed: int, data: Path, out: Path) -> float:
    """Return BLEU on the test set, against the raw reference."""
    languages = params.languages
    folders = out / "trained", out / "vocabulary", out / "candidates", data / "truecasers", data / "raw/test"
    search = params.translate, params.tokenize, languages, params.seeds, str(seed)
    translations, replaced = out / "translations" / str(seed), out / "replaced" / str(seed)
    translate.run(*search, *folders, out / "tuned.json", translations)
    kept = params.replace.model_copy(update={"enabled": False})  # without a dictionary; BPE needs none
    replace.run(kept, params.tokenize, languages, translations, out / "alignment", replaced)
    lines = list(read_lines(replaced / "plain.txt"))
    references = list(read_lines(data / "raw/test/target.txt"))
    return bleu(lines, references, bleu_tokenizer(languages[1])).value


def format_row(row: Row) -> str:
    """Return a row of the table."""
    variant = row.variant
    return (
        f"| {variant.pairs:,} | {variant.model} | {variant.pieces:,} | {variant.dropout} | {row.epochs} | "
        f"{row.perplexity:.2f} | {row.bleu:.2f} | {row.minutes:.1f} |"
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", nargs="+", type=int, required=True, metavar="N")
    parser.add_argument("--models", nargs="+", default=["4 x 128, 3 x 128", "4 x 256, 3 x 256"])
    parser.add_argument("--pieces", nargs="+", type=int, default=[2000], metavar="N")
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.2], metavar="P")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, a row at a time."""
    options = parse(arguments)
    values = itertools.product(options.pairs, options.models, options.pieces, options.dropout)
    print("| pairs | encoder, decoder | pieces | dropout | epochs | validation perplexity | BLEU | minutes |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    params, found = load_params(), []
    with TemporaryDirectory() as name:
        data = Path(name)
        fetch(params, data)
        for number, variant in enumerate(Variant(*value) for value in values):
            row = train_and_score(change_params(params, variant), variant, data, data / str(number))
            print(format_row(row), flush=True)
            found.append(asdict(row))
            if options.json:
                write_json(options.json, found)


if __name__ == "__main__":
    main()
