"""The summary that `make repro` prints at the end: scores, example translations, mistakes in the corpus."""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from convs2s.base.files import read_lines
from convs2s.base.messages import visible
from convs2s.decode.translations import describe_unknown
from convs2s.score.identity import SetIdentity
from convs2s.score.kinds import DIGITS, TITLES

WIDTH = 100  # columns
LENGTH_MARGIN = 0.15
"""There is a remark if translations are longer or shorter than their references by more than this share."""


def find(path: Path) -> Path:
    """Return the path of a file or folder of a run; raise FileNotFoundError if it is not there."""
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: the run has not finished, or its outputs are missing. Run `make repro` "
            "(or `dvc repro`) there; `dvc status` shows what is missing."
        )
    return path


def read_result(path: Path) -> Any:
    """Return the content of a JSON file of a run."""
    return json.loads(find(path).read_text(encoding="utf-8"))


def summarize(data: Path, experiment: str = "") -> str:
    """Return a summary of the results in `data`.

    Args:
        experiment: the DVC experiment that the results will become, if they are those of a copy of the
            workspace; else empty.
    """
    evaluation = data / "evaluation"
    scores = pd.read_csv(find(evaluation / "scores.csv"), dtype={"member": str})
    table = format_scores(scores)
    seed = next(member for member in scores["member"] if member.isdigit())
    restore = f"dvc exp apply {experiment} && " if experiment else ""
    lines = [
        "Scores of the test set\n",
        table.to_string(col_space={title: len(str(title)) + 1 for title in table}) + "\n",
        f"of {SetIdentity(**read_result(evaluation / 'test_set.json'))}\n",
        *(f"{remark}\n" for remark in list_remarks(read_result(evaluation / "metrics.json"))),
        *(
            f"{TITLES.get(name, name):16}{text}"
            for name, text in read_result(evaluation / "signatures.json").items()
        ),
        "\nExample translations\n",
        *show_examples(find(evaluation / "examples.tsv")),
        *list_mistakes(data / "filtered" / "report.json"),
        f"To use a model: {restore}.venv/bin/convs2s translate --model {data}/models/{seed}",
        "Other outputs: docs/tutorial.md",
    ]
    return "\n".join(lines)


def format_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores, formatted: a row per seed, mean and standard deviation, and the ensemble if any.

    A score without a title, perhaps of a run of other code, has its own name.
    """
    if "std" not in set(scores["member"]):  # with one seed, the mean just repeats it
        scores = scores[scores["member"] != "mean"]
    if (scores["text"] == "plain").all():
        scores = scores.drop(columns="text")
    models = scores["member"].replace({"std": "standard deviation", r"^(\d+)$": r"seed \1"}, regex=True)
    table = scores.drop(columns="member").replace({"text": {"plain": "kept"}})
    for name in DIGITS.keys() & table.keys():
        digits = DIGITS[name]
        table[name] = [f"{score:,.{digits}f}" for score in table[name]]
    return (
        table.set_axis(models.rename(None))
        .rename_axis(columns="model")
        .rename(columns=TITLES | {"text": "unknown words"})
    )


def list_remarks(metrics: Mapping[str, Any]) -> list[str]:
    """Return a line for each thing that the scores alone do not say, judging by those of all seeds.

    That is, how many characters the models never saw, and that translations are much too long or too short.
    """
    remarks = []
    if count := metrics.get("unknown_characters", 0):
        remarks.append(describe_unknown(count))
    ratio = metrics.get("mean", {}).get("length_ratio", 1.0)
    if ratio > 1 + LENGTH_MARGIN:
        remarks.append(
            f"length ratio {ratio:.2f}: translations have {ratio - 1:.0%} more words than their references, "
            "which costs BLEU. Look at the examples: a model that is not trained enough repeats words."
        )
    if ratio < 1 - LENGTH_MARGIN:
        remarks.append(
            f"length ratio {ratio:.2f}: translations have {1 - ratio:.0%} fewer words than their references, "
            "which costs BLEU. Look at the examples for parts left out; a higher translate.alpha helps."
        )
    return remarks


def show_examples(path: Path) -> list[str]:
    """Return the lines of the examples, wrapped, without control characters, which could clear a screen."""
    header, *rows = [visible(line).split("\t") for line in read_lines(path)]
    lines = []
    for row in rows:
        example = dict(zip(header, row, strict=True))
        lines.append("line {line}, model {model}: sentence BLEU {bleu}, chrF2 {chrf}".format(**example))
        for side in ("source", "hypothesis", "reference"):
            text = f"  {side:12}{example[side] or '(empty)'}"
            lines.append(textwrap.fill(text, WIDTH, subsequent_indent=" " * 14))
        lines.append("")
    return lines


def list_mistakes(path: Path) -> list[str]:
    """Return a line for each warning on the corpus, and on the pairs that are also in training."""
    counts = read_result(path) if path.exists() else {}
    warnings = [f"Warning: {warning}" for warning in counts.get("warnings", [])]
    overlaps = [
        f"{split} pairs also in training: {overlap['pairs']:,} of {overlap['of']:,}"
        for split, overlap in counts.get("overlap", {}).items()
    ]
    return warnings + overlaps
