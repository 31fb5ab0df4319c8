"""BLEU of the trained models on further test sets, by their sacreBLEU names.

    python -m pipelines.test_sets wmt14 wmt14/full

Each seed's model folder is scored, and all together as ensemble, detokenized and with sacreBLEU's
signature. That is for sets beside download.test, such as the whole newstest2014 beside Stanford's part of it
(T30). A set is fetched once, into data/downloads.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from convs2s.decode.package import read_settings
from convs2s.decode.translator import load
from convs2s.score.corpus_scores import bleu, signatures
from convs2s.score.test_set import TestSetIdentity, identify
from convs2s.text.pair_folder import read_folder
from convs2s.text.sources.sacrebleu_sets import sacrebleu_part
from convs2s.text.sources.split import write_split


def score(names: Sequence[str], data: Path) -> tuple[pd.DataFrame, list[TestSetIdentity]]:
    """Translate test sets with the models in data/models, unknown words replaced as packaged.

    Returns:
        BLEU by 13a, a row per seed, then mean and standard deviation of several seeds, and their ensemble; a
        column per set. Beside it, which sets these are.

    Raises:
        FileNotFoundError: if there are no model folders.
        ValueError: if sacreBLEU knows no such set, or not in the languages of the models.
        ConnectionError: if a set cannot be fetched.
    """
    folders = sorted((data / "models").glob("[0-9]*"), key=lambda folder: int(folder.name))
    if not folders:
        raise FileNotFoundError(f"{data / 'models'} has no model folder; wanted those of a run: dvc repro")
    languages = read_settings(folders[0]).languages
    tuned = json.loads((data / "tuned" / "ensemble" / "alpha.json").read_text(encoding="utf-8"))
    chosen = {"alpha": tuned["alpha"]} if tuned else {}  # else the number that every folder has
    seeds = [f"seed {folder.name}" for folder in folders]
    table, sets = pd.DataFrame(index=seeds, dtype=float), []
    with TemporaryDirectory() as temporary:
        for number, name in enumerate(names):
            folder = Path(temporary) / str(number)
            write_split([sacrebleu_part(name, languages, data / "downloads" / "sacrebleu")], folder)
            sets.append(identify(folder))
            pairs = list(read_folder(folder))
            table[name] = pd.Series([bleu_of([one], {}, pairs) for one in folders], index=seeds)
            if len(folders) > 1:
                table.loc["mean", name] = table[name][seeds].mean()
                table.loc["standard deviation", name] = table[name][seeds].std()
                table.loc["ensemble", name] = bleu_of(folders, chosen, pairs)
    return table, sets


def bleu_of(folders: Sequence[Path], search: Mapping[str, Any], pairs: Sequence[tuple[str, str]]) -> float:
    """Return the BLEU of a model or an ensemble, with these other values of section `translate`."""
    found = load(folders, **search).translate([source for source, _ in pairs])
    return bleu(found, [target for _, target in pairs]).value


def main(arguments: list[str]) -> int:
    """Command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="such as wmt14/full; sacrebleu --list")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with models/")
    options = parser.parse_args(arguments)
    try:
        table, sets = score(options.names, options.data)
    except (OSError, ValueError) as error:
        print(f"test_sets: {error}", file=sys.stderr)
        return 1
    print(table.round(2).to_string())
    print("", *sets, f"BLEU {signatures()['bleu']}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
