"""The tables of the report: rows of text by column title."""

import json
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from convs2s.config.load import flatten_values, parse_yaml
from pipelines.preset import list_presets, preset_command, render
from pipelines.report.run import Run, group
from pipelines.report.scores import TITLES, format_number, score_table

Rows = list[dict[str, str]]


def list_runs(runs: Sequence[Run]) -> Rows:
    """Return a row per run: its differing parameters and main scores; ± is over seeds."""
    values = {
        name: [show_value(run.params.get(name, "–")) for run in runs] for run in runs for name in run.params
    }
    values = {name: found for name, found in values.items() if len(set(found)) > 1}
    rows = [
        {"run": run.name, **{name: found[number] for name, found in values.items()}, **main_scores(run)}
        for number, run in enumerate(runs)
    ]
    return [{title: cell for title, cell in row.items() if any(one[title] for one in rows)} for row in rows]


def show_value(value: Any) -> str:
    """Return a parameter's value as in params.yaml, on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def main_scores(run: Run) -> dict[str, str]:
    """Return a run's perplexity, and its scores over seeds and of the ensemble."""
    metrics = run.json("evaluation/metrics.json")
    perplexities = [run.json(f"trained/{seed}/metrics.json")["validation_perplexity"] for seed in run.seeds]
    found = {"validation perplexity": f"{fmean(perplexities):,.2f}"}
    for name in ("bleu", "chrf"):
        deviation = f" ± {metrics['std'][name]:,.2f}" if metrics.get("std") else ""
        ensemble = f"{metrics['ensemble'][name]:,.2f}" if metrics.get("ensemble") else ""
        found |= {
            TITLES[name]: f"{metrics['mean'][name]:,.2f}{deviation}",
            f"{TITLES[name]}, ensemble": ensemble,
        }
    return found


def find_origin(run: Run) -> tuple[str, list[str], str]:
    """Return the preset of a run, its changes to the preset, and the command that reproduces the run."""
    if run.title not in list_presets():  # own data with its own name
        return "", [], ""
    preset = flatten_values(parse_yaml(render(run.title), run.title))
    changes = {
        name: value for name, value in run.params.items() if drop_nulls(preset.get(name)) != drop_nulls(value)
    }
    texts = [f"{name}: {show_value(value)}" for name, value in changes.items()]
    return run.title, texts, f"{preset_command(run.title, changes)} && make repro"


def drop_nulls(value: Any) -> Any:
    """Return a value without the keys of sources that are null, which params.yaml need not have."""
    if isinstance(value, list):
        return [drop_nulls(one) for one in value]
    if isinstance(value, dict):
        return {key: drop_nulls(one) for key, one in value.items() if one is not None}
    return value


def list_scores(run: Run) -> Rows:
    """Return all scores of a run, a row per model."""
    table = score_table(run.table("evaluation/scores.csv")).astype(str)
    return format_numbers(table.rename_axis("model").reset_index().to_dict("records"))


def list_lengths(run: Run) -> Rows:
    """Return BLEU and chrF2 for each class of source length."""
    table = run.table("evaluation/by_length.csv").rename(columns={"source_words": "source words", **TITLES})
    return format_numbers(table.to_dict("records"))


def format_numbers(rows: Sequence[Any]) -> Rows:
    """Return rows with their numbers formatted, and titles without underscores."""
    return [{str(key).replace("_", " "): format_number(x) for key, x in row.items()} for row in rows]


def list_trainings(runs: Sequence[Run]) -> Rows:
    """Return a row per training: its metrics."""
    found = [(run, seed, run.json(f"trained/{seed}/metrics.json")) for run in runs for seed in run.seeds]
    return format_numbers([{"run": run.name, "seed": seed, **metrics} for run, seed, metrics in found])


def list_costs(runs: Sequence[Run]) -> Rows:
    """Return a row per training: its hardware and time."""
    return [{"run": run.name, "seed": seed, **cost(run.costs[seed])} for run in runs for seed in run.seeds]


def cost(sessions: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the total of a training's sessions; hours are multiplied by the number of devices."""
    if not sessions:
        others = "time", "target tokens/s", "products in", "PyTorch"
        return {"hardware": "not measured"} | dict.fromkeys(others, "")
    hours = defaultdict[str, float](float)
    for one in sessions:
        hours[one["unit"]] += one["seconds"] * one["count"] / 3600
    tokens, seconds = (sum(one[name] for one in sessions) for name in ("target_tokens", "training_seconds"))
    return {
        "hardware": ", ".join(dict.fromkeys(f"{one['count']} x {one['device']}" for one in sessions)),
        "time": " and ".join(f"{value:,.2f} {unit}-hours" for unit, value in hours.items()),
        "target tokens/s": f"{tokens / seconds:,.0f}" if seconds else "",
        "products in": ", ".join(dict.fromkeys(one["precision"] for one in sessions if "precision" in one)),
        "PyTorch": ", ".join(dict.fromkeys(one["torch"] for one in sessions)),
    }


def group_by_corpus(runs: Sequence[Run]) -> list[tuple[str, Run]]:
    """Return a run for each distinct training corpus, with the names of all its runs."""
    same = group(runs, lambda run: str([run.json(f"filtered/{name}.json") for name in ("report", "removed")]))
    return [(", ".join(run.name for run in runs), runs[0]) for runs in same]


def list_splits(run: Run) -> Rows:
    """Return pairs and words of the training and the validation set, after the filter."""
    counts = run.json("filtered/report.json")
    return format_numbers([{"split": split, **counts[split]} for split in ("train", "valid")])


def list_overlap(run: Run) -> Rows:
    """Return how many pairs and sources of the other splits are also in the training data."""
    overlap = run.json("filtered/report.json").get("overlap", {})  # older runs have none
    return format_numbers([{"also in train": split, **found} for split, found in overlap.items()])


def list_rules(run: Run) -> Rows:
    """Return how many pairs each rule of the filter removed."""
    rules = run.table("filtered/rules.csv").to_dict("records")
    return format_numbers(
        [{**row, "limit": str(row["limit"]), "share": f"{row['share']:.2%}"} for row in rules]
    )


def sample_removed(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Return some of the pairs that the filter removed, by rule."""
    removed = defaultdict[str, list[dict[str, Any]]](list)
    for row in run.json("filtered/removed.json"):
        removed[row["rule"]].append(row)
    return removed


def list_parameters(run: Run) -> Rows:
    """Return all parameters."""
    return [{"parameter": name, "value": show_value(value)} for name, value in run.params.items()]
