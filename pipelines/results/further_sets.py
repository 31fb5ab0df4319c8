"""BLEU of the trained models on further test sets, by their sacreBLEU names.

    python -m pipelines.results.further_sets wmt14 wmt14/full

The model of each of train.seeds is scored, and all together as ensemble, detokenized and with sacreBLEU's
signature. That is for sets beside download.test, such as the whole newstest2014 beside Stanford's part of it
(T30). A set is fetched once, into data/downloads.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from convs2s.config.load import load_params
from convs2s.package.folder import read_settings
from convs2s.package.translator import Translator, load
from convs2s.score.corpus_scores import bleu, signatures
from convs2s.score.identity import SetIdentity, identify
from convs2s.text.corpus.pair_folder import read_folder
from convs2s.text.sources.sacrebleu_sets import sacrebleu_part
from convs2s.text.sources.split import write_split

TestSet = tuple[list[tuple[str, str]], SetIdentity]


def score(names: Sequence[str], seeds: Sequence[int], data: Path) -> tuple[pd.DataFrame, list[SetIdentity]]:
    """Translate test sets with the models of these seeds, unknown words replaced as packaged.

    Returns:
        BLEU by 13a, a row per seed, then mean and standard deviation of several seeds, and their ensemble; a
        column per set. Beside it, which sets these are.

    Raises:
        FileNotFoundError: if a seed has no model folder in data/models.
        ValueError: if sacreBLEU knows no such set, or not in the languages of the models.
        ConnectionError: if a set cannot be fetched.
    """
    folders = [data / "models" / str(seed) for seed in seeds]
    languages = read_settings(folders[0]).languages
    sets = [read_set(name, languages, data / "downloads" / "sacrebleu") for name in names]
    rows = {
        f"seed {seed}": scores_of(load(folder), sets) for seed, folder in zip(seeds, folders, strict=True)
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(names))
    if len(seeds) > 1:
        mean, deviation = table.mean(), table.std()
        table.loc["mean"], table.loc["standard deviation"] = mean, deviation
        table.loc["ensemble"] = scores_of(load(folders, **chosen_alpha(data)), sets)
    return table, [identity for _, identity in sets]


def read_set(name: str, languages: tuple[str, str], downloads: Path) -> TestSet:
    """Return the pairs of a test set, read as stage download does, and what it is known by."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "test"
        write_split([sacrebleu_part(name, languages, downloads)], folder)
        return list(read_folder(folder)), identify(folder)


def chosen_alpha(data: Path) -> dict[str, Any]:
    """Return the alpha that stage tune-ensemble has chosen; none if all folders have a number."""
    tuned = json.loads((data / "tuned" / "ensemble" / "alpha.json").read_text(encoding="utf-8"))
    return {"alpha": tuned["alpha"]} if tuned else {}


def scores_of(translator: Translator, sets: Sequence[TestSet]) -> list[float]:
    """Return the BLEU of a model or an ensemble on each set."""
    scores = []
    for pairs, _ in sets:
        sources, references = zip(*pairs, strict=True)
        scores.append(bleu(translator.translate(sources), references).value)
    return scores


def main(arguments: list[str]) -> int:
    """Command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="such as wmt14/full; sacrebleu --list")
    options = parser.parse_args(arguments)
    try:
        table, sets = score(options.names, load_params().train.seeds, Path("data"))
    except (OSError, ValueError) as error:
        print(f"test_sets: {error}", file=sys.stderr)
        return 1
    print(table.round(2).to_string())
    print("", *sets, f"BLEU {signatures()['bleu']}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
