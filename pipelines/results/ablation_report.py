"""An ablation table as Markdown and a picture, with our figures next to the paper's.

This is the last step of `make sweep TABLE=table5`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
import pandas as pd
from matplotlib.figure import Figure

from convs2s.score.pictures import save
from convs2s.text.corpus.files import atomic_path, write_lines
from pipelines.results.markdown import figure, given, table
from pipelines.results.paper import MEASURES, SPEED, Row, Table

CIRCUMSTANCES = [SPEED, "experiment", "corpus", "commit", "test_set", "signature", "failed"]
"""Columns that the flow adds to a row's settings and metrics."""
ORIGIN = (
    "Ours: {}; mean ± standard deviation over seeds; BLEU of tokenized text, before unknown words are "
    "replaced. Paper: WMT'14 English to German, means of three runs."
)
ORIGIN_OF_SPEED = "Our target tokens/s count updates only, without validation, EOS included."


def compare(of: Table, experiments: pd.DataFrame) -> pd.DataFrame:
    """Return a row per row of the paper's table: its figures as printed, then ours, NaN where there are none.

    Raises:
        ValueError: if there are experiments for rows that the table does not have.
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
    """Return the paper's figures and ours; BLEU before unknown words are replaced, as in the paper (§5.4)."""
    ours = {str(key): value for key, value in experiment.items() if given(value)}
    seeds = pd.Series([v for k, v in ours.items() if k.endswith(".validation_perplexity")], dtype=float)
    kept = "without_replacement." if "without_replacement.mean.bleu_tokenized" in ours else ""
    bleu, deviation = (ours.get(f"{kept}{kind}.bleu_tokenized") for kind in ("mean", "std"))
    return {
        "row": row.row, "column": row.place[1], **{f"paper_{name}": getattr(row, name) for name in MEASURES},
        "perplexity": seeds.mean(), "perplexity_std": seeds.std(), "bleu": bleu, "bleu_std": deviation,
        "seeds": len(seeds), **{key: ours.get(key) for key in CIRCUMSTANCES},
    }  # fmt: skip


def place_of(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Return row and column of an experiment; in a CSV, column 5 may read 5 or 5.0, and none is blank."""
    column = row.get("column")
    return str(row["row"]), str(column).removesuffix(".0") if given(column) else ""


def cells(row: Mapping[Any, Any], name: str) -> list[str]:
    """Return the paper's figure and ours, or why there is none."""
    paper = row[f"paper_{name}"]
    missing = "failed" if given(row.get("failed")) else "not run"
    return [str(paper) if given(paper) else "-", figure(row[name], row[f"{name}_std"], missing)]


def row_lines(of: Table, rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return a Markdown table with a line per row of `compare` or of a record; empty measures are omitted."""
    names = [name for name in MEASURES if any(given(row[k]) for row in rows for k in (name, f"paper_{name}"))]
    speed = any(given(row[SPEED]) for row in rows)
    lines = []
    for row in rows:
        line = dict(zip(filter(None, [of.row, of.column]), place_of(row), strict=False))
        for name in names:
            line[f"{MEASURES[name]}, paper"], line[f"{MEASURES[name]}, ours"] = cells(row, name)
        line["seeds"] = str(row["seeds"])
        if speed:
            line["target tokens/s"] = figure(row[SPEED], missing="-", digits=0)
        lines.append(line)
    return table(lines)


def markdown(of: Table, frame: pd.DataFrame) -> list[str]:
    """Return the paper's table with our figures next to the published ones, and the origin of ours."""
    rows = frame.to_dict(orient="records")
    lines = [f"**{of.title}**" + f" ({of.section})" * bool(of.section), ""]
    corpora = (frame["corpus"] + " at commit " + frame["commit"]).dropna().unique()
    lines += [*row_lines(of, rows), "", ORIGIN.format(", ".join(corpora) or "unknown origin")]
    lines += [text for text in (ORIGIN_OF_SPEED if frame[SPEED].notna().any() else "", of.note) if text]
    for name, title in (("test_set", "test set"), ("signature", "BLEU signature")):
        lines += [f"Our {title}: `{text}`." for text in frame[name].dropna().unique()]
    reasons = {", ".join(filter(None, place_of(row))): row["failed"] for row in rows}
    failed = [f"- {name} failed: {reason}" for name, reason in reasons.items() if given(reason)]
    return [*lines, *([""] if failed else []), *failed]


def draw(of: Table, frame: pd.DataFrame, path: Path) -> None:
    """Draw each measure: differences from the first row, or for a table with columns, a line per row."""
    picture, grid = Figure(figsize=(11, 4.5), layout="constrained"), of.column is not None
    picture.suptitle(of.title + f" ({of.section})" * bool(of.section))
    names = [m for m in MEASURES if frame[[f"paper_{m}", m]].notna().any(axis=None)] or ["bleu"]
    for axes, name in zip(picture.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for whose, column, line in (("paper", f"paper_{name}", "o--"), ("ours", name, "o-")):
            values = frame[column].astype(float) - (0 if grid else float(frame[column].iloc[0] or "nan"))
            for row, part in frame.groupby("row", sort=False) if grid else [("", frame)]:
                places = part["column"].astype(float) if grid else part["row"]
                error = part[f"{name}_std"] if whose == "ours" else None
                form, label = (line, f"{row}, {whose}") if grid else ("o", whose)
                axes.errorbar(places, values[part.index], yerr=error, fmt=form, label=label)
        difference = "" if grid else ", difference from the first row"
        axes.set(xlabel=of.column or of.row, ylabel=f"{MEASURES[name]}{difference}")
        axes.tick_params(axis="x", rotation=0 if grid else 20)
        axes.legend(fontsize="small")
    with atomic_path(path) as temporary, matplotlib.style.context("default"):
        save(picture, temporary)


def write(name: str, of: Table, experiments: pd.DataFrame, folder: Path) -> tuple[str, Path]:
    """Write NAME.md and NAME.png to a folder; return the Markdown and the picture's path."""
    frame, picture = compare(of, experiments), folder / f"{name}.png"
    lines = markdown(of, frame)
    write_lines(folder / f"{name}.md", lines)
    draw(of, frame, picture)
    return "\n".join([*lines, ""]), picture
