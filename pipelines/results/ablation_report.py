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
from pipelines.results.comparison import compare, markdown, read_experiments
from pipelines.results.paper import MEASURES, Table, read_table


def write(name: str, table: Table, experiments: pd.DataFrame, folder: Path) -> tuple[str, Path]:
    """Write NAME.md, NAME.table.csv and NAME.png to a folder; return the Markdown and the picture's path."""
    frame, picture = compare(table, experiments), folder / f"{name}.png"
    text = markdown(table, frame)
    csv = frame.to_csv(index=False, lineterminator="\n")
    for path, content in ((folder / f"{name}.table.csv", csv), (folder / f"{name}.md", text)):
        with atomic_path(path) as temporary:
            temporary.write_text(content, encoding="utf-8", newline="\n")
    with atomic_path(picture) as temporary, matplotlib.style.context("default"):
        save(drawn(table, frame), temporary)
    return text, picture


def drawn(table: Table, frame: pd.DataFrame) -> Figure:
    """Return a picture: differences to the first row, or for a grid, lines over its columns."""
    picture = Figure(figsize=(11, 4.5), layout="constrained")
    picture.suptitle(f"{table.title} ({table.section})")
    if table.column is None:
        names = [m for m in MEASURES if frame[[f"paper_{m}", m]].notna().any(axis=None)] or ["bleu"]
        for axes, name in zip(picture.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            draw_differences(axes, frame, name)
    else:
        for axes, prefix in zip(picture.subplots(1, 2), ("paper_", ""), strict=True):
            draw_lines(axes, frame, prefix)
            axes.set(xlabel=table.column, ylabel="BLEU", title="paper" if prefix else "ours")
    return picture


def draw_differences(axes: Axes, frame: pd.DataFrame, name: str) -> None:
    """Draw bars for how much each row differs from the first one, the paper's and ours."""
    for offset, column, error in ((-0.2, f"paper_{name}", None), (0.2, name, frame[f"{name}_std"])):
        values = frame[column].astype(float) - float(frame[column].iloc[0] or "nan")
        label = "ours" if column == name else "paper"
        bars = axes.barh(frame.index + offset, values.fillna(0.0), 0.4, xerr=error, label=label)
        axes.bar_label(bars, [f"{v:+.2f}".replace("+nan", "") for v in values], fontsize=7, padding=2)
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


def main(arguments: list[str]) -> int:
    """Command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("table", help="name of a file in experiments/tables/, such as table4 or figure2")
    parser.add_argument("experiments", type=Path, help="CSV that the sweep wrote")
    parser.add_argument("folder", type=Path, nargs="?", help="to write to; default: that of the CSV")
    options = parser.parse_args(arguments)
    folder = options.folder or options.experiments.parent
    try:
        table = read_table(options.table)
        experiments = read_experiments(options.experiments, options.table)
        print(write(options.table, table, experiments, folder)[0], end="")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
