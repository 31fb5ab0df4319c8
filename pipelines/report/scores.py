"""The summary that `make repro` prints at the end: scores, example translations, corpus and training."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from convs2s.base.files import read_lines
from convs2s.base.messages import visible
from convs2s.score.identity import SetIdentity
from convs2s.score.tables import DIGITS

WIDTH = 100  # columns
TITLES = {
    "text": "unknown words", "bleu": "BLEU", "bleu_tokenized": "tokenized BLEU", "chrf": "chrF2",
    "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "length_ratio": "length ratio",
    "unknown_words": "<unk>",
}  # fmt: skip


def find(path: Path) -> Path:
    """Return the path of a file or folder of a run; raise FileNotFoundError if it is not there."""
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: the run has not finished, or its outputs are missing. Run `make repro` "
            "(or `dvc repro`) there; `dvc status` shows what is missing."
        )
    return path


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of a run."""
    return json.loads(find(path).read_text(encoding="utf-8"))


def report(data: Path, experiment: str = "") -> str:
    """Return the report on the results in `data`; raise FileNotFoundError if the pipeline is unfinished.

    Args:
        experiment: the DVC experiment that the results become, if they are from a copy of the workspace.
    """
    evaluation = data / "evaluation"
    scores = pd.read_csv(find(evaluation / "scores.csv"), dtype={"member": str})
    signatures = read_json(evaluation / "signatures.json")
    test_set = SetIdentity.read(find(evaluation / "test_set.json"))
    named = [f"{TITLES.get(score, score):16}{signature}" for score, signature in signatures.items()]
    table = score_table(scores)
    trained = {
        path.parent.name: list_figures(path)
        for path in sorted(data.glob("trained/*/metrics.json"))
        if path.parent.name in set(scores["member"])  # seeds of earlier runs may be there, too
    }
    sections = {
        "Scores of the test set": [
            table.to_string(col_space={title: len(str(title)) + 1 for title in table}),
            "",
            wrap("of ", str(test_set)),
            "",
            *named,
        ],
        "Example translations": [show_examples(find(evaluation / "examples.tsv"))],
        "Corpus": [
            part
            for path in data.glob("filtered/report.json")
            for part in (
                list_figures(path).to_string(),
                *list_overlap(path),
                *map("Warning: {}".format, read_json(path).get("warnings", [])),
            )
        ],
        "Training": [pd.DataFrame(trained).rename_axis(columns="seed").to_string()] if trained else [],
    }
    texts = ["\n".join([title, "-" * len(title), *lines]) for title, lines in sections.items() if lines]
    seeds = [member for member in scores["member"].unique() if member.isdigit()]
    restore = f"dvc exp apply {experiment} && " if experiment else ""
    use = f"To use a model: {restore}.venv/bin/convs2s translate --model {data}/models/{seeds[0]}"
    return "\n\n".join([*texts, f"{use}\nOther outputs: docs/tutorial.md"]) + "\n"


def score_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores, formatted: a row per seed, mean and standard deviation, and the ensemble if any."""
    if "std" not in set(scores["member"]):  # with one seed, the mean just repeats it
        scores = scores[scores["member"] != "mean"]
    if (scores["text"] == "plain").all():
        scores = scores.drop(columns="text")
    models = scores["member"].replace({"std": "standard deviation", r"^(\d+)$": r"seed \1"}, regex=True)
    table = scores[[name for name in TITLES if name in scores]].replace({"text": {"plain": "kept"}})
    table = table.set_axis(models.rename(None)).rename_axis(columns="model").rename(columns=TITLES)
    for name, digits in DIGITS.items():
        if TITLES[name] in table:
            table[TITLES[name]] = table[TITLES[name]].map(f"{{:,.{digits}f}}".format)
    return table


def show_examples(path: Path) -> str:
    """Return the examples, separated by blank lines."""
    header, *rows = [line.split("\t") for line in read_lines(path)]
    texts = []
    for one in (dict(zip(header, row, strict=True)) for row in rows):
        model = f"seed {one['model']}" if one["model"].isdigit() else f"the {one['model']}"
        head = f"line {one['line']}, by {model}: sentence BLEU {one['bleu']}, chrF2 {one['chrf']}"
        sides = (wrap(f"  {name:12}", one[name]) for name in ("source", "hypothesis", "reference"))
        texts.append("\n".join([head, *sides]))
    return "\n\n".join(texts)


def wrap(label: str, text: str) -> str:
    """Return a text after its label, wrapped; no control character may reach the terminal."""
    return textwrap.fill(
        visible(text) or "(empty)",
        WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_on_hyphens=False,
    )


def list_figures(path: Path) -> "pd.Series[str]":
    """Return the nested figures of a JSON file, flattened and formatted."""
    found = (
        pd.json_normalize(read_json(path))
        .iloc[0]
        .filter(regex=r"^(?!warnings$|overlap\.)")
        .rename(lambda name: re.sub("[._]", " ", name))
    )
    return found.map(format_number)


def list_overlap(path: Path) -> list[str]:
    """Return a line for each split of report.json, on its pairs that are also training pairs."""
    overlap = read_json(path).get("overlap", {})
    return [
        f"{split} pairs also in training: {one['pairs']:,} of {one['of']:,}" for split, one in overlap.items()
    ]


def format_number(found: float | str) -> str:
    """Return a number, formatted: 30,000, 12.35 or 0.04321; a text as it is."""
    if isinstance(found, str):
        return found
    return f"{found:,.4g}" if 0 < abs(found) < 1 else f"{found:,.{2 if found % 1 else 0}f}"


def main(arguments: Sequence[str]) -> int:
    """Print the report on the given folder (default: `data`); return the exit status."""
    parser = argparse.ArgumentParser("python -m pipelines.report.scores", description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=Path("data"), help="folder (default: data)")
    parser.add_argument("--experiment", default="", help="name under which the results are saved")
    options = parser.parse_args(arguments)
    try:
        print(report(options.data, options.experiment), end="")
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
