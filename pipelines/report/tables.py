"""The tables of the report."""

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import pandas as pd
from markupsafe import Markup

from convs2s.score.kinds import SCORES, TITLES
from convs2s.text.corpus.suspects import KINDS
from pipelines.report.run import Run
from pipelines.report.significance import Comparison, Significance

ABSENT = "–"
"""Shown where a run has no value."""


def to_html(rows: pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> Markup:
    """Return a table with titles in words and formatted numbers; a mapping has a row for each key."""
    if isinstance(rows, Mapping):
        rows = [make_row(key, value) for key, value in rows.items()]
    frame = pd.DataFrame(rows, dtype=object).fillna("").map(format_number).rename(columns=TITLES)
    frame.columns = [str(title).replace("_", " ") for title in frame.columns]
    with pd.option_context("display.max_colwidth", None):
        table = frame.to_html(index=False, border=0, justify="left")  # which escapes the cells
    return Markup('<div class="scroll">{}</div>').format(Markup(table))


def make_row(key: str, value: Any) -> dict[str, Any]:
    """Return a row of a table whose first column, without a title, has the key."""
    columns = value if isinstance(value, dict) else {"value": value}
    return {"": key, **columns}


def format_number(cell: Any) -> str:
    """Return a number, formatted: 30,000, 12.35 or 0.04321; a text as it is."""
    if isinstance(cell, str | bool):
        return str(cell)
    if 0 < abs(cell) < 1:
        return f"{cell:,.4g}"
    is_whole = cell % 1 == 0
    return f"{cell:,.0f}" if is_whole else f"{cell:,.2f}"


def list_parameters(run: Run) -> dict[str, str]:
    """Return all parameters as in params.yaml, each on one line."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in run.params.items()
    }


def find_differing(parameters: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the names of the parameters that differ between runs, in the order of params.yaml."""
    names = dict.fromkeys(name for values in parameters for name in values)
    return [name for name in names if len({values.get(name, ABSENT) for values in parameters}) > 1]


def list_runs(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row per run: date, commit, differing parameters and main scores; ± is over seeds."""
    parameters = [list_parameters(run) for run in runs]
    differing = find_differing(parameters)
    return [
        {
            "run": run.name,
            "date": run.origin.date or ABSENT,
            "commit": run.origin.commit or ABSENT,
            **{name: values.get(name, ABSENT) for name in differing},
            **main_scores(run),
        }
        for run, values in zip(runs, parameters, strict=True)
    ]


def main_scores(run: Run) -> dict[str, str]:
    """Return a run's perplexity, and its scores over seeds and of the ensemble."""
    perplexities = [run.json(f"trained/{seed}/metrics.json")["validation_perplexity"] for seed in run.seeds]
    return summarize_scores(run.json("evaluation/metrics.json"), perplexities)


def summarize_scores(metrics: Mapping[str, Any], perplexities: Sequence[float]) -> dict[str, str]:
    """Return the main scores by title: ± is over seeds.

    Args:
        metrics: metrics.json of the stage evaluate.
        perplexities: of the validation set, one per seed.
    """
    scores = {"validation perplexity": f"{fmean(perplexities):,.2f}"}
    for name in [name for name, kind in SCORES.items() if kind.is_main]:
        deviation = f" ± {metrics['std'][name]:,.2f}" if "std" in metrics else ""
        scores[TITLES[name]] = f"{metrics['mean'][name]:,.2f}{deviation}"
        if "ensemble" in metrics:
            scores[f"{TITLES[name]}, ensemble"] = f"{metrics['ensemble'][name]:,.2f}"
    return scores


def list_comparisons(significance: Significance) -> list[dict[str, str]]:
    """Return a row per run: its score, over the test set and over samples of it, and how it differs."""
    return [
        {
            "run": comparison.run.name,
            "translations": describe_member(comparison.run),
            significance.title: f"{comparison.score:.2f}",
            "over samples, 95 %": f"{comparison.mean:.2f} ± {comparison.interval:.2f}",
            **show_difference(comparison),
        }
        for comparison in significance.comparisons
    ]


def show_difference(comparison: Comparison) -> dict[str, str]:
    """Return how a run's score differs from that of the first run, by title."""
    difference, p = comparison.difference, comparison.p
    return {
        "difference": ABSENT if difference is None else f"{difference:+.2f}",
        "p": ABSENT if p is None else f"{p:.3f}",
    }


def describe_member(run: Run) -> str:
    """Return whose translations are those of a run."""
    return run.member if run.member == "ensemble" else f"seed {run.member}"


def list_suspects(suspects: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    """Return a row for each kind of pairs that look like mistakes: how many, of how many, the first line."""
    return [
        {
            "pairs that": KINDS[kind].fault,
            "pairs": counts["pairs"],
            "of": counts["of"],
            "first line in data/raw/train": counts["first"] or ABSENT,
        }
        for kind, counts in suspects.items()
    ]


def list_rules(run: Run) -> pd.DataFrame:
    """Return what each rule of the filter removed, with shares in percent."""
    rules = run.table("filtered/rules.csv")
    rules["share"] = [f"{100 * share:.2g} %" for share in rules["share"]]
    return rules


def list_trainings(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row per training: its metrics and cost."""
    return [
        {
            "run": run.name,
            "seed": seed,
            **run.json(f"trained/{seed}/metrics.json"),
            **run.json(f"costs/{seed}.json"),
        }
        for run in runs
        for seed in run.seeds
    ]
