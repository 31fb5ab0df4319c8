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

    Args:
        experiments: a row each, with `row`, `column`, circumstances, and metrics under the names that the
            flow `sweep` gives them; a row that failed has no metrics, and the reason in `failed`.

    Raises:
        ValueError: if there are experiments of rows that the table does not have.
    """
    known = {row.place: row for row in of.rows}
    found = {place_of(row): row for row in experiments.to_dict("records")}
    if strange := found.keys() - known.keys():
        names, wanted = ("; ".join(repr(named(place)) for place in places) for places in (strange, known))
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
    papers = {f"paper_{name}": getattr(row, name) for name in MEASURES}
    perplexity = {"perplexity": seeds.mean(), "perplexity_std": seeds.std()}
    bleu = {"bleu": f"{kept}mean.bleu_tokenized", "bleu_std": f"{kept}std.bleu_tokenized"}
    measured = perplexity | {name: ours.get(key) for name, key in bleu.items()} | {"seeds": len(seeds)}
    facts = {key: ours.get(key) for key in CIRCUMSTANCES}
    return {"row": row.row, "column": row.column, **papers, **measured, **facts}


def place_of(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Return row and column of an experiment; a CSV makes 5, 5.0 or nothing of a column."""
    column = row.get("column")
    return str(row["row"]), str(column).removesuffix(".0") if given(column) else ""


def named(place: Sequence[str]) -> str:
    """Return row and column as text."""
    return ", ".join(filter(None, place))


def cells(row: Mapping[Any, Any], name: str) -> list[str]:
    """Return the paper's figure and ours, or why there is none."""
    paper = row[f"paper_{name}"]
    missing = "failed" if given(row.get("failed")) else "not run"
    return [str(paper) if given(paper) else "-", figure(row[name], row[f"{name}_std"], missing)]


def row_lines(of: Table, rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return a Markdown table with a line per row; a measure that no row has is left out.

    Args:
        rows: as `compare` returns them, or as a record has them, which has no contexts.
    """
    names = [name for name in MEASURES if any(given(row[k]) for row in rows for k in (name, f"paper_{name}"))]
    speed, contexts = any(given(row[SPEED]) for row in rows), all(CONTEXTS[0] in row for row in rows)
    lines = []
    for row in rows:
        line = dict(zip([of.row, *([of.column] if of.column else [])], place_of(row), strict=False))
        for name in names:
            titles = (f"{MEASURES[name]}, {whose}" for whose in ("paper", "ours"))
            line |= dict(zip(titles, cells(row, name), strict=True))
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
        columns = sorted({row["column"] for row in rows}, key=float)
        empty = dict.fromkeys(columns, "")
        grid = {row["row"]: {f"{of.row} \\ {of.column}": str(row["row"]), **empty} for row in rows}
        for row in rows:
            grid[row["row"]][row["column"]] = " / ".join(cells(row, "bleu"))
        lines += [*table(list(grid.values())), "", "Each cell: BLEU of the paper / ours.", ""]
    corpora = frame[["corpus", "commit"]].dropna().drop_duplicates().itertuples(index=False)
    origin = ", ".join(f"{corpus} at commit {commit}" for corpus, commit in corpora) or "unknown origin"
    lines += [*row_lines(of, rows), "", ORIGIN.format(origin)]
    lines += [text for text in (ORIGIN_OF_SPEED if frame[SPEED].notna().any() else "", of.note) if text]
    for name, title in (("test_set", "Test set"), ("signature", "Signature of BLEU")):
        lines += [f"{title} of ours: `{text}`." for text in frame[name].dropna().unique()]
    failed = [f"- {named(place_of(row))} failed: {row['failed']}" for row in rows if given(row["failed"])]
    return [*lines, *([""] if failed else []), *failed]


def drawn(of: Table, frame: pd.DataFrame) -> Figure:
    """Return a picture of each measure: differences to the first row, or for a grid, lines over columns."""
    picture = Figure(figsize=(11, 4.5), layout="constrained")
    picture.suptitle(f"{of.title} ({of.section})")
    names = [m for m in MEASURES if frame[[f"paper_{m}", m]].notna().any(axis=None)] or ["bleu"]
    for axes, name in zip(picture.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for whose, column, line in (("paper", f"paper_{name}", "--"), ("ours", name, "-")):
            values, error = frame[column].astype(float), frame[f"{name}_std"] * (column == name)
            if of.column is None:
                axes.errorbar(values - values.iloc[0], frame.index, xerr=error, fmt="o", label=whose)
                continue
            for row, places in frame["column"].astype(float).groupby(frame["row"], sort=False):
                ours = {"label": f"{row}, {whose}", "linestyle": line, "yerr": error[places.index]}
                axes.errorbar(places, values[places.index], marker="o", **ours)
        if of.column is None:
            axes.set_yticks(frame.index, frame["row"].tolist())
            axes.invert_yaxis()
            axes.set_xlabel(f"{MEASURES[name]}, difference to the first row")
        else:
            axes.set(xlabel=of.column, ylabel=MEASURES[name])
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
    folder = options.folder or options.experiments.parent
    try:
        of = read_table(options.table)
        experiments = read_experiments(options.experiments, options.table)
        print(write(options.table, of, experiments, folder)[0], end="")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
