"""An ablation table to read: Markdown, a CSV and a picture, the paper's figures beside ours.

    python -m pipelines.results.ablation_report TABLE EXPERIMENTS.csv [FOLDER]

takes the experiments of an earlier sweep over experiments/tables/TABLE.yaml and writes TABLE.md,
TABLE.table.csv and TABLE.png to FOLDER, by default that of the CSV. `make sweep TABLE=table5` ends with
the same.
"""

import argparse
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.style
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from convs2s.score.pictures import save
from convs2s.text.corpus.files import atomic_path
from pipelines.results.ablation import KEY, MEASURES, SPEED, Ablation, compare, read_ablation

TOLD = (
    "Ours: {}; mean ± standard deviation over seeds; BLEU of tokenized text, before unknown words are "
    "replaced. Paper: WMT'14 English to German, means of three runs."
)
TOLD_OF_SPEED = "Target tokens/s of ours: of updates alone, without validation, end marks counted."


def markdown(ablation: Ablation, table: pd.DataFrame) -> str:
    """Return the paper's table with our figures beside the published ones."""
    lines = row_lines(ablation, table)
    if ablation.column is not None:
        lines = [*grid_lines(ablation, table), "", *lines]
    corpora = table[["corpus", "commit"]].dropna().drop_duplicates().itertuples(index=False)
    origin = ", ".join(f"{corpus} at commit {commit}" for corpus, commit in corpora) or "of no told origin"
    lines += ["", TOLD.format(origin)]
    lines += [TOLD_OF_SPEED] if table[SPEED].notna().any() else []
    lines += [ablation.note] if ablation.note else []
    for name, title in (("test_set", "Test set"), ("signature", "Signature of BLEU")):
        lines += [f"{title} of ours: `{text}`." for text in table[name].dropna().unique()]
    lines += failures(table)
    return "\n".join([f"**{ablation.title}** ({ablation.section})", "", *lines, ""])


def row_lines(ablation: Ablation, table: pd.DataFrame) -> list[str]:
    """Return a Markdown table with a row per experiment."""
    names = [name for name in MEASURES if table[f"paper_{name}"].notna().any() or table[name].notna().any()]
    heads = [ablation.row, *([ablation.column] if ablation.column else [])]
    heads += [f"{MEASURES[name]}, {whose}" for name in names for whose in ("paper", "ours")]
    speeds = [SPEED] if table[SPEED].notna().any() else []
    heads += ["seeds", *["target tokens/s" for _ in speeds], "encoder / decoder see, words"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for one in table.to_dict(orient="records"):
        cells = place(one)
        for name in names:
            cells += [printed(one[f"paper_{name}"]), our_figure(one, name)]
        told = ["-" if pd.isna(one[speed]) else f"{one[speed]:,.0f}" for speed in speeds]
        cells += [str(one["seeds"]), *told, context(one)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def place(one: Mapping[Any, Any]) -> list[str]:
    """Return what the paper calls a row, and its column if there are columns."""
    return [str(one[key]) for key in KEY if pd.notna(one[key])]


def context(one: Mapping[Any, Any]) -> str:
    """Return how many words encoder and decoder of a row see, if that is known."""
    values = [one["encoder_context"], one["decoder_context"]]
    return "-" if any(map(pd.isna, values)) else " / ".join(f"{value:.0f}" for value in values)


def failures(table: pd.DataFrame) -> list[str]:
    """Return a Markdown list of what went wrong, after an empty line."""
    found = table.dropna(subset=["failed"]).to_dict(orient="records")
    lines = [f"- {', '.join(place(one))} failed: {one['failed']}" for one in found]
    return ["", *lines] if lines else []


def grid_lines(ablation: Ablation, table: pd.DataFrame) -> list[str]:
    """Return a Markdown table of BLEU by row and column, each cell the paper's and ours."""
    columns = sorted(set(table["column"]), key=float)
    head = [f"{ablation.row} \\ {ablation.column}", *columns]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row, cells in table.groupby("row", sort=False):
        shown = dict.fromkeys(columns, "")
        for one in cells.to_dict(orient="records"):
            shown[one["column"]] = f"{printed(one['paper_bleu'])} / {our_figure(one, 'bleu')}"
        lines.append(f"| {row} | {' | '.join(shown.values())} |")
    return [*lines, "", "Each cell: BLEU of the paper / ours."]


def printed(published: Any) -> str:
    """Return a figure of the paper, if it gives one."""
    return "-" if pd.isna(published) else str(published)


def our_figure(one: Mapping[Any, Any], name: str) -> str:
    """Return a figure of ours, or why there is none."""
    return figure(one[name], one[f"{name}_std"], "not run" if pd.isna(one["failed"]) else "failed")


def figure(value: float, deviation: float, missing: str) -> str:
    """Return a figure for reading, with its deviation if there is one."""
    if math.isnan(value):
        return missing
    return f"{value:.2f}" + ("" if math.isnan(deviation) else f" ± {deviation:.2f}")


def draw(ablation: Ablation, table: pd.DataFrame, path: Path) -> None:
    """Write a PNG: differences to the first row, or lines over the columns; the paper's beside ours."""
    with matplotlib.style.context("default"):
        picture = Figure(figsize=(11, 4.5), layout="constrained")
        if ablation.column is None:
            names = [m for m in MEASURES if table[[f"paper_{m}", m]].notna().any(axis=None)] or ["bleu"]
            for axes, name in zip(picture.subplots(1, len(names), squeeze=False)[0], names, strict=True):
                draw_differences(axes, table, name)
        else:
            for axes, prefix in zip(picture.subplots(1, 2), ("paper_", ""), strict=True):
                draw_lines(axes, table, prefix)
                axes.set(xlabel=ablation.column, ylabel="BLEU", title="paper" if prefix else "ours")
        picture.suptitle(f"{ablation.title} ({ablation.section})")
        with atomic_path(path) as temporary:
            save(picture, temporary)


def draw_differences(axes: Axes, table: pd.DataFrame, name: str) -> None:
    """Draw how much each row differs from the first, published and ours."""
    for place, (column, whose) in enumerate(((f"paper_{name}", "paper"), (name, "ours"))):
        values = table[column].astype(float)
        values -= values.iloc[0]
        error = table[f"{name}_std"] if column == name else None
        height = [index + (place - 0.5) * 0.4 for index in range(len(table))]
        bars = axes.barh(height, values.fillna(0.0), 0.4, xerr=error, label=whose)
        texts = ["" if math.isnan(value) else f"{value:+.2f}" for value in values]
        axes.bar_label(bars, texts, fontsize=7, padding=2)
    axes.set_yticks(range(len(table)), table["row"].tolist())
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_title(f"{MEASURES[name]}, difference to the first row")
    axes.legend(fontsize="small")


def draw_lines(axes: Axes, table: pd.DataFrame, prefix: str) -> None:
    """Draw BLEU over the columns, a line for each row."""
    for row, cells in table.dropna(subset=[f"{prefix}bleu"]).groupby("row", sort=False):
        error = None if prefix else cells["bleu_std"].fillna(0.0)
        places, bleu = cells["column"].astype(float), cells[f"{prefix}bleu"].astype(float)
        axes.errorbar(places, bleu, yerr=error, marker="o", capsize=3, label=str(row))
    if axes.has_data():
        axes.legend(fontsize="small")
    else:
        axes.text(0.5, 0.5, "no figures", ha="center", transform=axes.transAxes)


def write(name: str, ablation: Ablation, experiments: pd.DataFrame, folder: Path) -> tuple[str, Path]:
    """Write NAME.md, NAME.table.csv and NAME.png to a folder; return the Markdown and the picture's path."""
    table = compare(ablation, experiments)
    text = markdown(ablation, table)
    with atomic_path(folder / f"{name}.table.csv") as path:
        table.to_csv(path, index=False, encoding="utf-8", lineterminator="\n")
    with atomic_path(folder / f"{name}.md") as path:
        path.write_text(text, encoding="utf-8", newline="\n")
    draw(ablation, table, folder / f"{name}.png")
    return text, folder / f"{name}.png"


def main(arguments: list[str]) -> int:
    """Command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("table", help="name of a file in experiments/tables/, such as table4 or figure2")
    parser.add_argument("experiments", type=Path, help="CSV that the sweep wrote")
    parser.add_argument("folder", type=Path, nargs="?", help="to write to; default: that of the CSV")
    options = parser.parse_args(arguments)
    try:
        ablation = read_ablation(options.table)
        experiments = pd.read_csv(options.experiments, dtype=dict.fromkeys(KEY, str))
        if missing := [name for name in ("experiment", "row") if name not in experiments.columns]:
            raise ValueError(
                f"{options.experiments} has no column {', '.join(missing)}; wanted the CSV that the sweep of "
                "a table has written"
            )
        others = [name for name in experiments["experiment"] if not name.startswith(f"{options.table}-")]
        if others:
            raise ValueError(
                f"{options.experiments} has the experiment {others[0]}, which is not of {options.table}; "
                "wanted the CSV that the sweep of this table has written"
            )
        text, _ = write(options.table, ablation, experiments, options.folder or options.experiments.parent)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
