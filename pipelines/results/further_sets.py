"""BLEU of the trained models on further test sets, by their sacreBLEU names.

    python -m pipelines.results.further_sets wmt14 wmt14/full

Scores the model of each of train.seeds, and their ensemble, detokenized and with sacreBLEU's signature, on
sets beside download.test, such as the whole newstest2014 beside Stanford's part of it (T30). A set is
downloaded once, into data/downloads.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from convs2s.config.load import load_params
from convs2s.package.folder import read_settings
from convs2s.package.translator import Translator, load
from convs2s.score.corpus_scores import bleu, signatures
from convs2s.score.identity import SetIdentity, identify
from convs2s.text.corpus.pair_folder import read_folder
from convs2s.text.sources.sacrebleu_sets import sacrebleu_part
from convs2s.text.sources.split import write_split
from pipelines.results.reading import read

IdentifiedSet = tuple[Sequence[str], Sequence[str], SetIdentity]


def score(names: Sequence[str], seeds: Sequence[int], data: Path) -> tuple[pd.DataFrame, list[SetIdentity]]:
    """Return BLEU (13a) of each seed, mean, deviation and ensemble by test set, and the sets' identities.

    Raises:
        FileNotFoundError: if a seed has no model folder in data/models.
        ValueError: if sacreBLEU knows no such set, or not in the languages of the models.
        ConnectionError: if a set cannot be downloaded.
    """
    folders = [data / "models" / str(seed) for seed in seeds]
    languages = read_settings(folders[0]).languages
    sets = [read_set(name, languages, data / "downloads" / "sacrebleu") for name in names]
    table = pd.DataFrame(
        {f"seed {seed}": scores_of(load(path), sets) for seed, path in zip(seeds, folders, strict=True)}
    )
    if len(seeds) > 1:
        tuned = read(data / "tuned" / "ensemble" / "alpha.json", "run dvc repro tune-ensemble")
        alpha = {"alpha": tuned["alpha"]} if tuned else {}  # empty: the folders have theirs
        ensemble = scores_of(load(folders, **alpha), sets)
        mean, deviation = table.mean(axis=1), table.std(axis=1)
        table["mean"], table["standard deviation"], table["ensemble"] = mean, deviation, ensemble
    return table.set_axis(list(names)).T, [identity for _, _, identity in sets]


def read_set(name: str, languages: tuple[str, str], downloads: Path) -> IdentifiedSet:
    """Return the two sides of a test set, as stage download would write them, and its identity."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "test"
        write_split([sacrebleu_part(name, languages, downloads)], folder)
        sources, references = zip(*read_folder(folder), strict=True)
        return sources, references, identify(folder)


def scores_of(translator: Translator, sets: Sequence[IdentifiedSet]) -> list[float]:
    return [bleu(translator.translate(sources), references).value for sources, references, _ in sets]


def main(arguments: list[str]) -> int:
    """Command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="such as wmt14/full; sacrebleu --list")
    try:
        table, sets = score(parser.parse_args(arguments).names, load_params().train.seeds, Path("data"))
    except (OSError, ValueError) as error:
        print(f"further_sets: {error}", file=sys.stderr)
        return 1
    print(table.round(2).to_string(), "", *sets, f"BLEU {signatures()['bleu']}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
