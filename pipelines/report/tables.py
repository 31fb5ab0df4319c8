"""The tables of the report: rows of text by column title."""

import json
from collections.abc import Sequence
from statistics import fmean

from pipelines.preset import EXPERIMENTS
from pipelines.report.differences import compact, differing, value
from pipelines.report.run import Corpus, Cost, Run, Training, grouped
from pipelines.report.scores import TITLES, number, score_table
from pipelines.results.commands import changes, command
from pipelines.results.markdown import figure
from pipelines.results.provenance import preset_of

Rows = list[dict[str, str]]


def summary(runs: Sequence[Run]) -> Rows:
    """Return a row per run: its differing parameters and main scores; ± is over seeds."""
    names = differing(runs)
    rows = [{"run": run.name, **{name: value(run, name) for name in names}, **scores(run)} for run in runs]
    return [{title: cell for title, cell in row.items() if any(one[title] for one in rows)} for row in rows]


def scores(run: Run) -> dict[str, str]:
    """Return a run's perplexity, and its scores over seeds and of the ensemble."""
    deviation, ensemble = run.metrics.std or {}, run.metrics.ensemble or {}
    perplexity = fmean(one.metrics["validation_perplexity"] for one in run.trainings)
    found = {"validation perplexity": figure(perplexity)}
    for name in ("bleu", "chrf"):
        found[TITLES[name]] = figure(run.metrics.mean[name], deviation.get(name))
        found[f"{TITLES[name]}, ensemble"] = figure(ensemble.get(name))
    return found


def of_models(run: Run) -> Rows:
    """Return all scores of a run, a row per model."""
    table = score_table(run.scores)
    return [
        {"model": str(model), **dict(zip(table.columns, map(str, row), strict=True))}
        for model, row in zip(table.index, table.itertuples(index=False), strict=True)
    ]


def trainings(runs: Sequence[Run]) -> Rows:
    """Return a row per training: its metrics."""

    def metrics(one: Training) -> dict[str, str]:
        return {name.replace("_", " "): number(x) for name, x in one.metrics.items()}

    return [{"run": run.name, "seed": one.seed, **metrics(one)} for run in runs for one in run.trainings]


def costs(runs: Sequence[Run]) -> Rows:
    """Return a row per training: its hardware and time."""
    return [{"run": run.name, "seed": one.seed, **spent(one.cost)} for run in runs for one in run.trainings]


def spent(cost: Cost) -> dict[str, str]:
    """Return the cost of a training."""
    if cost is None:
        return {"hardware": "not measured", "time": "", "target tokens/s": "", "PyTorch": ""}
    return {
        "hardware": ", ".join(cost["hardware"]),
        "time": " and ".join(f"{figure(hours)} {unit}-hours" for unit, hours in cost["hours"].items()),
        "target tokens/s": figure(cost["target_tokens_per_second"], digits=0),
        "PyTorch": ", ".join(cost["torch"]),
    }


def splits(corpus: Corpus) -> Rows:
    """Return pairs and words of the training and the validation set, after the filter."""
    return [
        {"split": split, **{name.replace("_", " "): number(x) for name, x in corpus.counts[split].items()}}
        for split in ("train", "valid")
    ]


def corpora(runs: Sequence[Run]) -> list[tuple[str, Corpus]]:
    """Return the distinct corpora of runs, each with the names of its runs."""

    def content(run: Run) -> str:
        return json.dumps([run.corpus.counts, run.corpus.rules, run.corpus.removed])

    return [(", ".join(run.name for run in same), same[0].corpus) for same in grouped(runs, content)]


def origin(run: Run) -> tuple[str, list[str], str]:
    """Return the preset of a run, its changes to the preset, and the command that reproduces the run."""
    try:
        preset = preset_of(run.title, EXPERIMENTS)
    except ValueError:  # own data with its own name
        return "", [], ""
    texts = [f"{name}: {compact(found)}" for name, found in changes(preset, run.params).items()]
    return preset, texts, command(preset, run.params, "repro")


def of_lengths(run: Run) -> Rows:
    """Return BLEU and chrF2 for each class of source length."""
    titles = {"source_words": "source words", **TITLES}
    rows = run.by_length.to_dict("records")
    return [
        {titles.get(str(key), str(key)): x if isinstance(x, str) else number(x) for key, x in row.items()}
        for row in rows
    ]


def rules(corpus: Corpus) -> Rows:
    """Return how many pairs each rule removed."""
    return [
        {
            "rule": row["rule"],
            "limit": row["limit"],
            "removed": number(row["removed"]),
            "share": f"{row['share']:.2%}",
        }
        for row in corpus.rules
    ]


def parameters(run: Run) -> Rows:
    """Return all parameters."""
    return [{"parameter": name, "value": value(run, name)} for name in run.params]
