"""An ablation table for reading: Markdown, a CSV and a picture, our figures beside the paper's.

    python -m pipelines.results.ablation_report TABLE EXPERIMENTS.csv [FOLDER]

takes the experiments of an earlier sweep over experiments/tables/TABLE.yaml and writes TABLE.md,
TABLE.table.csv and TABLE.png to FOLDER, by default that of the CSV. `make sweep TABLE=table5` ends with
the same.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
import pandas as pd
from matplotlib.figure import Figure

from convs2s.score.pictures import save
from convs2s.text.corpus.files import atomic_path, write_lines
from pipelines.results.markdown import figure, given, table
from pipelines.results.paper import MEASURES, SPEED, Row, Table, read_table

CONTEXTS = ["encoder_context", "decoder_context"]
CIRCUMSTANCES = [SPEED, *CONTEXTS, "corpus", "commit", "test_set", "signature", "failed"]
"""What the flow adds to a row beside its settings and metrics."""
ORIGIN = (
    "Ours: {}; mean ± standard deviation over seeds; BLEU of tokenized text, before unknown words are "
    "replaced. Paper: WMT'14 English to German, means of three runs."
)
ORIGIN_OF_SPEED = "Our target tokens/s count updates only, without validation, EOS included."


def read_experiments(path: Path, key: str) -> pd.DataFrame:
    """Read what the flow `sweep` wrote for a table; raise ValueError if it is something else."""
    experiments = pd.read_csv(path, dtype={"row": str, "column": str})
    wanted = "wanted the CSV that the sweep of this table has written"
    if missing := {"experiment", "row"} - set(experiments):
        raise ValueError(f"{path} has no column {', '.join(sorted(missing))}; {wanted}")
    others = experiments["experiment"][~experiments["experiment"].str.startswith(f"{key}-")]
    if len(others):
        raise ValueError(f"{path} has the experiment {others.iloc[0]}, which is not of {key}; {wanted}")
    return experiments


def compare(of: Table, experiments: pd.DataFrame) -> pd.DataFrame:
    """Return a row per row of the paper's table: its figures as printed, then ours, NaN where there are none.

    Raises:
        ValueError: if there are experiments of rows that the table does not have.
    """
    known = {row.place: row for row in of.rows}
    found = {place_of(row): row for row in experiments.to_dict("records")}
    if strange := found.keys() - known.keys():
        names, wanted = (
            "; ".join(repr(", ".join(filter(None, place))) for place in places) for places in (strange, known)
        )
        raise ValueError(
            f"the experiments have the row(s) {names}; wanted those of {of.title}: {wanted}. Do they "
            "belong to another table, or was this one edited since?"
        )
    frame = pd.DataFrame([compared(row, found.get(place, {})) for place, row in known.items()])
    return frame.astype(dict.fromkeys([*MEASURES, *(f"{name}_std" for name in MEASURES), SPEED], float))


def compared(row: Row, experiment: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the paper's figures and ours; BLEU before unknown words are replaced, as the paper's (§5.4)."""
    ours = {str(key): value for key, value in experiment.items() if given(value)}
    seeds = pd.Series([v for k, v in ours.items() if k.endswith(".validation_perplexity")], dtype=float)
    kept = "without_replacement." if "without_replacement.mean.bleu_tokenized" in ours else ""
    bleu, deviation = (ours.get(f"{kept}{kind}.bleu_tokenized") for kind in ("mean", "std"))
    return {
        "row": row.row, "column": row.column, **{f"paper_{name}": getattr(row, name) for name in MEASURES},
        "perplexity": seeds.mean(), "perplexity_std": seeds.std(), "bleu": bleu, "bleu_std": deviation,
        "seeds": len(seeds), **{key: ours.get(key) for key in CIRCUMSTANCES},
    }  # fmt: skip


def place_of(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Return row and column of an experiment; a CSV makes 5, 5.0 or nothing of a column."""
    column = row.get("column")
    return str(row["row"]), str(column).removesuffix(".0") if given(column) else ""


def cells(row: Mapping[Any, Any], name: str) -> list[str]:
    """Return the paper's figure and ours, or why there is none."""
    paper = row[f"paper_{name}"]
    missing = "failed" if given(row.get("failed")) else "not run"
    return [str(paper) if given(paper) else "-", figure(row[name], row[f"{name}_std"], missing)]


def row_lines(of: Table, rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return a Markdown table with a line per row, of `compare` or of a record; without empty measures."""
    names = [name for name in MEASURES if any(given(row[k]) for row in rows for k in (name, f"paper_{name}"))]
    speed, contexts = any(given(row[SPEED]) for row in rows), all(CONTEXTS[0] in row for row in rows)
    lines = []
    for row in rows:
        line = dict(zip(filter(None, [of.row, of.column]), place_of(row), strict=False))
        for name in names:
            line[f"{MEASURES[name]}, paper"], line[f"{MEASURES[name]}, ours"] = cells(row, name)
        line["seeds"] = str(row["seeds"])
        if speed:
            line["target tokens/s"] = figure(row[SPEED], missing="-", digits=0)
        if contexts:
            seen = [figure(row[key], digits=0) for key in CONTEXTS if given(row[key])]
            line["encoder / decoder see, words"] = " / ".join(seen) or "-"
        lines.append(line)
    return table(lines)


def markdown(of: Table, frame: pd.DataFrame) -> list[str]:
    """Return the paper's table with our figures beside the published ones, and where ours come from."""
    rows = frame.to_dict(orient="records")
    lines = [f"**{of.title}** ({of.section})", ""]
    if of.column is not None:
        empty = dict.fromkeys(sorted({row["column"] for row in rows}, key=float), "")
        grid = {row["row"]: {f"{of.row} \\ {of.column}": str(row["row"]), **empty} for row in rows}
        for row in rows:
            grid[row["row"]][row["column"]] = " / ".join(cells(row, "bleu"))
        lines += [*table(list(grid.values())), "", "Each cell: BLEU of the paper / ours.", ""]
    corpora = (frame["corpus"] + " at commit " + frame["commit"]).dropna().unique()
    lines += [*row_lines(of, rows), "", ORIGIN.format(", ".join(corpora) or "unknown origin")]
    lines += [text for text in (ORIGIN_OF_SPEED if frame[SPEED].notna().any() else "", of.note) if text]
    for name, title in (("test_set", "Test set"), ("signature", "Signature of BLEU")):
        lines += [f"{title} of ours: `{text}`." for text in frame[name].dropna().unique()]
    reasons = {", ".join(filter(None, place_of(row))): row["failed"] for row in rows}
    failed = [f"- {name} failed: {reason}" for name, reason in reasons.items() if given(reason)]
    return [*lines, *([""] if failed else []), *failed]


def drawn(of: Table, frame: pd.DataFrame) -> Figure:
    """Return a picture of each measure: differences to the first row, or for a grid, lines over columns."""
    picture, grid = Figure(figsize=(11, 4.5), layout="constrained"), of.column is not None
    picture.suptitle(f"{of.title} ({of.section})")
    names = [m for m in MEASURES if frame[[f"paper_{m}", m]].notna().any(axis=None)] or ["bleu"]
    for axes, name in zip(picture.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for whose, column in (("paper", f"paper_{name}"), ("ours", name)):
            values = frame[column].astype(float)
            for row, part in frame.groupby("row", sort=False) if grid else [("", frame)]:
                places = part["column"].astype(float) if grid else part["row"]
                shown = values[part.index] - (0 if grid else values.iloc[0])
                error, line = part[f"{name}_std"] * (whose == "ours"), {"paper": "--", "ours": "-"}[whose]
                form, label = (f"o{line}", f"{row}, {whose}") if grid else ("o", whose)
                axes.errorbar(places, shown, yerr=error, fmt=form, label=label)
        axes.set(
            xlabel=of.column or of.row,
            ylabel=f"{MEASURES[name]}{'' if grid else ', difference to the first row'}",
        )
        axes.tick_params(axis="x", rotation=0 if grid else 20)
        axes.legend(fontsize="small")
    return picture


def write(name: str, of: Table, experiments: pd.DataFrame, folder: Path) -> tuple[str, Path]:
    """Write NAME.md, NAME.table.csv and NAME.png to a folder; return the Markdown and the picture's path."""
    frame, picture = compare(of, experiments), folder / f"{name}.png"
    lines = markdown(of, frame)
    with atomic_path(folder / f"{name}.table.csv") as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n")
    write_lines(folder / f"{name}.md", lines)
    with atomic_path(picture) as temporary, matplotlib.style.context("default"):
        save(drawn(of, frame), temporary)
    return "\n".join([*lines, ""]), picture


def main(arguments: list[str]) -> int:
    """Command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("table", help="name of a file in experiments/tables/, such as table4 or figure2")
    parser.add_argument("experiments", type=Path, help="CSV that the sweep wrote")
    parser.add_argument("folder", type=Path, nargs="?", help="to write to; default: that of the CSV")
    options = parser.parse_args(arguments)
    try:
        table, experiments = read_table(options.table), read_experiments(options.experiments, options.table)
        folder = options.folder or options.experiments.parent
        print(write(options.table, table, experiments, folder)[0], end="")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
