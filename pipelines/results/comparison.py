"""The experiments of a sweep beside the paper's figures: as a data frame, and as Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pipelines.results.markdown import figure, given, table
from pipelines.results.paper import MEASURES, SPEED, Table

OURS = [f"{name}{suffix}" for name in MEASURES for suffix in ("", "_std")]
PAPERS = {f"paper_{name}": name for name in MEASURES}
CONTEXTS = ["encoder_context", "decoder_context"]
COLUMNS = ["row", "column", *PAPERS, *OURS, "seeds", SPEED]  # numbers or empty, but for the row's name
CIRCUMSTANCES = [SPEED, *CONTEXTS, "corpus", "commit", "test_set", "signature", "failed"]
"""What the flow adds to a row beside its settings and metrics."""
BLEU, KEPT = ["mean.bleu_tokenized", "std.bleu_tokenized"], "without_replacement."
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

    BLEU is that of tokenized text before unknown words are replaced, as the paper's (§5.4).

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
    ours = pd.DataFrame([found.get(place, {}) for place in known])
    perplexities = ours.filter(regex=r"^\d+\.validation_perplexity$").astype(float)
    kept = ours.reindex(columns=[f"{KEPT}{name}" for name in BLEU]).set_axis(BLEU, axis="columns")
    bleu = ours.reindex(columns=BLEU).mask(kept[BLEU[0]].notna(), kept).astype(float)
    measured = [perplexities.mean(axis=1), perplexities.std(axis=1), bleu[BLEU[0]], bleu[BLEU[1]]]
    keys = {"row": "row", "column": "column", **PAPERS}
    paper = pd.DataFrame([{column: getattr(row, name) for column, name in keys.items()} for row in of.rows])
    figures = pd.DataFrame(dict(zip(OURS, measured, strict=True))).assign(seeds=perplexities.count(axis=1))
    return paper.join([figures, ours.reindex(columns=CIRCUMSTANCES)]).astype({SPEED: float})


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


def row_lines(titles: Sequence[str], rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return a Markdown table with a line per row; a measure that no row has is left out.

    Args:
        titles: of the row's name, and of its column in a grid.
        rows: as `compare` returns them, or as a record has them, which has no contexts.
    """
    names = [name for name in MEASURES if any(given(row[k]) for row in rows for k in (name, f"paper_{name}"))]
    header = [*titles, *(f"{MEASURES[name]}, {whose}" for name in names for whose in ("paper", "ours"))]
    body = [[*place_of(row)[: len(titles)], *(c for name in names for c in cells(row, name))] for row in rows]
    further = {"seeds": [str(row["seeds"]) for row in rows]}
    if any(given(row[SPEED]) for row in rows):
        speeds = [row[SPEED] for row in rows]
        further["target tokens/s"] = [f"{float(one):,.0f}" if given(one) else "-" for one in speeds]
    if all(CONTEXTS[0] in row for row in rows):
        seen = [[f"{row[key]:.0f}" for key in CONTEXTS if given(row[key])] for row in rows]
        further["encoder / decoder see, words"] = [" / ".join(one) or "-" for one in seen]
    columns = zip(*further.values(), strict=True)
    return table([*header, *further], [[*line, *more] for line, more in zip(body, columns, strict=True)])


def markdown(of: Table, frame: pd.DataFrame) -> str:
    """Return the paper's table with our figures beside the published ones, and where ours come from."""
    rows = frame.to_dict(orient="records")
    lines = [f"**{of.title}** ({of.section})", ""]
    if of.column is not None:
        frame = frame.assign(cell=[" / ".join(cells(row, "bleu")) for row in rows])
        grid = frame.pivot_table("cell", "row", "column", "first", fill_value="", sort=False)
        grid = grid[sorted(grid, key=lambda layers: float(str(layers)))]
        body = [[str(name), *line] for name, line in zip(grid.index, grid.to_numpy(), strict=True)]
        lines += [*table([f"{of.row} \\ {of.column}", *grid], body), ""]
        lines += ["Each cell: BLEU of the paper / ours.", ""]
    corpora = frame[["corpus", "commit"]].dropna().drop_duplicates().itertuples(index=False)
    origin = ", ".join(f"{corpus} at commit {commit}" for corpus, commit in corpora) or "unknown origin"
    lines += [*row_lines([*filter(None, [of.row, of.column])], rows), "", ORIGIN.format(origin)]
    lines += [ORIGIN_OF_SPEED] if frame[SPEED].notna().any() else []
    lines += [of.note] if of.note else []
    for name, title in (("test_set", "Test set"), ("signature", "Signature of BLEU")):
        lines += [f"{title} of ours: `{text}`." for text in frame[name].dropna().unique()]
    failed = [f"- {named(place_of(row))} failed: {row['failed']}" for row in rows if given(row["failed"])]
    return "\n".join([*lines, *([""] if failed else []), *failed, ""])
