"""The tables of the report."""

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import pandas as pd
from markupsafe import Markup

from pipelines.report.run import Run
from pipelines.report.scores import TITLES


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


def list_runs(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row per run: its differing parameters and main scores; ± is over seeds."""
    parameters = [list_parameters(run) for run in runs]
    names = dict.fromkeys(name for values in parameters for name in values)
    differing = [name for name in names if len({values.get(name, "–") for values in parameters}) > 1]
    return [
        {"run": run.name, **{name: values.get(name, "–") for name in differing}, **main_scores(run)}
        for run, values in zip(runs, parameters, strict=True)
    ]


def main_scores(run: Run) -> dict[str, str]:
    """Return a run's perplexity, and its scores over seeds and of the ensemble."""
    metrics = run.json("evaluation/metrics.json")
    perplexities = [run.json(f"trained/{seed}/metrics.json")["validation_perplexity"] for seed in run.seeds]
    scores = {"validation perplexity": f"{fmean(perplexities):,.2f}"}
    for name in ("bleu", "chrf"):
        deviation = f" ± {metrics['std'][name]:,.2f}" if "std" in metrics else ""
        scores[TITLES[name]] = f"{metrics['mean'][name]:,.2f}{deviation}"
        if "ensemble" in metrics:
            scores[f"{TITLES[name]}, ensemble"] = f"{metrics['ensemble'][name]:,.2f}"
    return scores


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
