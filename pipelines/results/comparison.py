"""The experiments of a sweep beside the paper's figures: as a data frame, and as Markdown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from pipelines.results.ablation import MEASURES, SPEED, Ablation
from pipelines.results.markdown import figure, given, table

OURS = [f"{name}{suffix}" for name in MEASURES for suffix in ("", "_std")]
PAPERS = {f"paper_{name}": name for name in MEASURES}
CONTEXTS = ["encoder_context", "decoder_context"]
CIRCUMSTANCES = [SPEED, *CONTEXTS, "corpus", "commit", "test_set", "signature", "failed"]
"""What the flow adds to a row beside its settings and metrics."""
ORIGIN = (
    "Ours: {}; mean ± standard deviation over seeds; BLEU of tokenized text, before unknown words are "
    "replaced. Paper: WMT'14 English to German, means of three runs."
)
ORIGIN_OF_SPEED = "Our target tokens/s count updates only, without validation, EOS included."


def compare(ablation: Ablation, experiments: pd.DataFrame) -> pd.DataFrame:
    """Return a row per row of the paper's table: its figures as printed, then ours, NaN where there are none.

    BLEU is that of tokenized text before unknown words are replaced, as the paper's (§5.4).

    Args:
        experiments: a row each, with `row`, `column`, circumstances, and metrics under the names that the
            flow `sweep` gives them; a row that failed has no metrics, and the reason in `failed`.

    Raises:
        ValueError: if there are experiments of rows that the table does not have.
    """
    found = {place_of(one): our_figures(one) for one in experiments.to_dict(orient="records")}
    known = {row.place: row for row in ablation.rows}
    if strange := found.keys() - known.keys():
        names, wanted = ("; ".join(repr(named(place)) for place in places) for places in (strange, known))
        raise ValueError(
            f"the experiments have the row(s) {names}; wanted those of {ablation.title}: {wanted}. Do they "
            "belong to another table, or was this one edited since?"
        )
    rows = [
        {"row": row.row, "column": row.column, "seeds": 0, **found.get(place, {})}
        | {column: getattr(row, name) for column, name in PAPERS.items()}
        for place, row in known.items()
    ]
    frame = pd.DataFrame(rows, columns=["row", "column", *PAPERS, *OURS, "seeds", *CIRCUMSTANCES])
    return frame.astype(dict.fromkeys([*OURS, SPEED], float))


def our_figures(metrics: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the figures and circumstances of one experiment."""
    names = [name for name in metrics if re.fullmatch(r"\d+\.validation_perplexity", str(name))]
    perplexities = pd.Series([metrics[name] for name in names], dtype=float).dropna()
    kept = "without_replacement."
    prefix = kept if given(metrics.get(f"{kept}mean.bleu_tokenized")) else ""
    bleu = [metrics.get(f"{prefix}{kind}.bleu_tokenized") for kind in ("mean", "std")]
    values = [perplexities.mean(), perplexities.std(), *bleu]
    circumstances = {name: metrics[name] for name in CIRCUMSTANCES if name in metrics}
    return dict(zip(OURS, values, strict=True)) | {"seeds": len(perplexities)} | circumstances


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


def row_lines(titles: Sequence[str], rows: Iterable[Mapping[Any, Any]]) -> list[str]:
    """Return a Markdown table with a line per row; a measure that no row has is left out.

    Args:
        titles: of the row's name, and of its column in a grid.
        rows: as `compare` returns them, or as a record has them.
    """
    rows = list(rows)
    names = [name for name in MEASURES if any(given(row[k]) for row in rows for k in (name, f"paper_{name}"))]
    header = [
        *titles,
        *(f"{MEASURES[name]}, {whose}" for name in names for whose in ("paper", "ours")),
        "seeds",
    ]
    body = [
        [
            *place_of(row)[: len(titles)],
            *(cell for name in names for cell in cells(row, name)),
            str(row["seeds"]),
        ]
        for row in rows
    ]
    if any(given(row[SPEED]) for row in rows):
        header.append("target tokens/s")
        for line, row in zip(body, rows, strict=True):
            line.append(f"{float(row[SPEED]):,.0f}" if given(row[SPEED]) else "-")
    if any(CONTEXTS[0] in row for row in rows):  # a record does not have it
        header.append("encoder / decoder see, words")
        for line, row in zip(body, rows, strict=True):
            line.append(" / ".join(f"{row[key]:.0f}" for key in CONTEXTS) if given(row[CONTEXTS[0]]) else "-")
    return table(header, body)


def markdown(ablation: Ablation, frame: pd.DataFrame) -> str:
    """Return the paper's table with our figures beside the published ones, and where ours come from."""
    rows = frame.to_dict(orient="records")
    lines = [f"**{ablation.title}** ({ablation.section})", ""]
    if ablation.column is not None:
        grid = {place_of(row): " / ".join(cells(row, "bleu")) for row in rows}
        columns = sorted({column for _, column in grid}, key=float)
        body = [
            [name, *(grid.get((name, column), "") for column in columns)] for name in frame["row"].unique()
        ]
        lines += [*table([f"{ablation.row} \\ {ablation.column}", *columns], body), ""]
        lines += ["Each cell: BLEU of the paper / ours.", ""]
    corpora = frame[["corpus", "commit"]].dropna().drop_duplicates().itertuples(index=False)
    origin = ", ".join(f"{corpus} at commit {commit}" for corpus, commit in corpora) or "unknown origin"
    lines += [
        *row_lines(list(filter(None, [ablation.row, ablation.column])), rows),
        "",
        ORIGIN.format(origin),
    ]
    lines += [ORIGIN_OF_SPEED] if frame[SPEED].notna().any() else []
    lines += [ablation.note] if ablation.note else []
    for name, title in (("test_set", "Test set"), ("signature", "Signature of BLEU")):
        lines += [f"{title} of ours: `{text}`." for text in frame[name].dropna().unique()]
    failed = [f"- {named(place_of(row))} failed: {row['failed']}" for row in rows if given(row["failed"])]
    return "\n".join([*lines, *([""] if failed else []), *failed, ""])
