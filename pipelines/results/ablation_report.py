"""An ablation table for reading: Markdown, a CSV and a picture, our figures beside the paper's.

    python -m pipelines.results.ablation_report TABLE EXPERIMENTS.csv [FOLDER]

takes the experiments of an earlier sweep over experiments/tables/TABLE.yaml and writes TABLE.md,
TABLE.table.csv and TABLE.png to FOLDER, by default that of the CSV. `make sweep TABLE=table5` ends with
the same.
"""

import argparse
import sys
from pathlib import Path

import matplotlib.style
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from convs2s.score.pictures import save
from convs2s.text.corpus.files import atomic_path
from pipelines.results.ablation import MEASURES, Ablation, read_ablation
from pipelines.results.comparison import compare, markdown


def draw(ablation: Ablation, frame: pd.DataFrame, path: Path) -> None:
    """Write a PNG: differences to the first row, or for a grid, lines over its columns."""
    with matplotlib.style.context("default"):
        picture = Figure(figsize=(11, 4.5), layout="constrained")
        if ablation.column is None:
            names = [m for m in MEASURES if frame[[f"paper_{m}", m]].notna().any(axis=None)] or ["bleu"]
            for axes, name in zip(picture.subplots(1, len(names), squeeze=False)[0], names, strict=True):
                draw_differences(axes, frame, name)
        else:
            for axes, prefix in zip(picture.subplots(1, 2), ("paper_", ""), strict=True):
                draw_lines(axes, frame, prefix)
                axes.set(xlabel=ablation.column, ylabel="BLEU", title="paper" if prefix else "ours")
        picture.suptitle(f"{ablation.title} ({ablation.section})")
        with atomic_path(path) as temporary:
            save(picture, temporary)


def draw_differences(axes: Axes, frame: pd.DataFrame, name: str) -> None:
    """Draw bars for how much each row differs from the first one, the paper's and ours."""
    for offset, column, whose in ((-0.2, f"paper_{name}", "paper"), (0.2, name, "ours")):
        values = frame[column].astype(float)
        values -= values.iloc[0]
        error = frame[f"{name}_std"] if whose == "ours" else None
        bars = axes.barh(frame.index + offset, values.fillna(0.0), 0.4, xerr=error, label=whose)
        texts = ["" if pd.isna(value) else f"{value:+.2f}" for value in values]
        axes.bar_label(bars, texts, fontsize=7, padding=2)
    axes.set_yticks(range(len(frame)), frame["row"].tolist())
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_title(f"{MEASURES[name]}, difference to the first row")
    axes.legend(fontsize="small")


def draw_lines(axes: Axes, frame: pd.DataFrame, prefix: str) -> None:
    """Draw BLEU over the columns, a line per row."""
    for row, cells in frame.dropna(subset=[f"{prefix}bleu"]).groupby("row", sort=False):
        error = None if prefix else cells["bleu_std"].fillna(0.0)
        places, bleu = cells["column"].astype(float), cells[f"{prefix}bleu"].astype(float)
        axes.errorbar(places, bleu, yerr=error, marker="o", capsize=3, label=str(row))
    if axes.has_data():
        axes.legend(fontsize="small")
    else:
        axes.text(0.5, 0.5, "no figures", ha="center", transform=axes.transAxes)


def write(name: str, ablation: Ablation, experiments: pd.DataFrame, folder: Path) -> tuple[str, Path]:
    """Write NAME.md, NAME.table.csv and NAME.png to a folder; return the Markdown and the picture's path."""
    frame = compare(ablation, experiments)
    text = markdown(ablation, frame)
    with atomic_path(folder / f"{name}.table.csv") as path:
        frame.to_csv(path, index=False, encoding="utf-8", lineterminator="\n")
    with atomic_path(folder / f"{name}.md") as path:
        path.write_text(text, encoding="utf-8", newline="\n")
    draw(ablation, frame, folder / f"{name}.png")
    return text, folder / f"{name}.png"


def read_experiments(path: Path, table: str) -> pd.DataFrame:
    """Read what the flow `sweep` wrote for a table.

    Raises:
        ValueError: if it is of another table, or something else.
    """
    experiments = pd.read_csv(path, dtype={"row": str, "column": str})
    wanted = "wanted the CSV that the sweep of this table has written"
    if missing := {"experiment", "row"} - set(experiments):
        raise ValueError(f"{path} has no column {', '.join(sorted(missing))}; {wanted}")
    others = experiments["experiment"][~experiments["experiment"].str.startswith(f"{table}-")]
    if len(others):
        raise ValueError(f"{path} has the experiment {others.iloc[0]}, which is not of {table}; {wanted}")
    return experiments


def main(arguments: list[str]) -> int:
    """Command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("table", help="name of a file in experiments/tables/, such as table4 or figure2")
    parser.add_argument("experiments", type=Path, help="CSV that the sweep wrote")
    parser.add_argument("folder", type=Path, nargs="?", help="to write to; default: that of the CSV")
    options = parser.parse_args(arguments)
    try:
        ablation = read_ablation(options.table)
        experiments = read_experiments(options.experiments, options.table)
        text, _ = write(options.table, ablation, experiments, options.folder or options.experiments.parent)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
