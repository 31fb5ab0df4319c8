"""The page of results, docs/results.md: the paper's figures, ours beside them, and where ours come from.

    python -m pipelines.results.page

makes it from experiments/: paper.yaml, tables/ and records/. `pipelines.results.record` ends with the same.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from convs2s.text.corpus.files import write_lines
from pipelines.results.comparison import row_lines
from pipelines.results.costs import TrainingCost
from pipelines.results.markdown import code, figure, table
from pipelines.results.paper import Paper, PaperRow, PaperTable, presets, read_paper
from pipelines.results.records import Record, Records, RunRecord, Scores, TableRecord, read_records

HEAD = """\
# Results

The paper's figures (Gehring et al., 2017) and ours. `python -m pipelines.results.page` makes this page from
`experiments/`: the paper's rows are in `paper.yaml` and `tables/`, our results in `records/`, where
`python -m pipelines.results.record NAME` writes them. Rows that we have not run say so; rows without a
command are systems of others, which the paper compares with.

A score means little without its signature (S1, S2, ... below) and its test set. ± is the standard deviation
over seeds. Hours are training hours, validation included, times GPUs, or times the CPU cores that computed,
summed over all seeds. Target tokens/s count updates only, without validation, on all GPUs or cores of a
training together, averaged over trainings; older records lack them.
"""
ORIGIN = ("signature", "hardware", "time of training", "commit")
SPEED_TITLES = ("system", "beam", "BLEU, ours", "seconds", "sentences/s", "tokens/s")
LONGEST = 60  # characters of a changed value that are shown; the record has all
Marks = dict[str, str]  # S1, S2, ... by signature, in the order of their first use on the page


def page(paper: Paper, records: Records) -> str:
    """Return the page as Markdown.

    Raises:
        ValueError: if a run has no place on the page, or lacks a score that its row needs.
    """
    for name, record in records.items():
        if isinstance(record, RunRecord) and record.preset not in presets(paper):
            raise ValueError(
                f"experiments/records/{name}.json: preset: found {record.preset}, which paper.yaml lacks. "
                "Add a row there: in the table `others` if it is not the paper's."
            )
    marks: Marks = {}
    sections = [line for one in paper.values() for line in section(one, records, marks)]
    signatures = [f"- {mark}: `{text}`" for text, mark in marks.items()]
    every = [line for name, record in records.items() for line in details(name, record)]
    lines = [HEAD, *sections, "## Signatures", "", *signatures, "", "## Records", "", *every]
    return "\n".join(lines).rstrip("\n") + "\n"


def section(one: PaperTable, records: Records, marks: Marks) -> list[str]:
    """Return the part of the page about one table; a paper's column without figures is left out."""
    names = [score.name for score in one.scores]
    shown = [score for score in one.scores if any(one.published(row)[score.name] for row in one.rows)]
    header = ["", *(f"{s.title}, {one.whose}" for s in shown), *(f"{s.title}, ours" for s in one.scores)]
    body = []
    for row in one.rows:
        figures = [one.published(row)[score.name] for score in shown]
        command = code(row.run.command if row.run else one.command) if row.ours else ""
        found = list(results_of(one, row, records))
        for suffix, name, cells in found:
            line = [row.label + suffix, *figures, *cells, *origin(name, records[name], names, marks)]
            body.append([*line, command])
        if not found:
            missing = ["not run" if row.ours else ""] * len(names)
            body.append([row.label, *figures, *missing, *[""] * len(ORIGIN), command])
    lines = [*([one.note, ""] if one.note else []), *table([*header, *ORIGIN, "command"], body), ""]
    for name, record in records.items():
        if isinstance(record, TableRecord) and record.table == one.key:
            lines += recorded_table(one, name, record, marks)
    return [f"## {one.title}", "", *lines]


def results_of(one: PaperTable, row: PaperRow, records: Records) -> Iterator[tuple[str, str, list[str]]]:
    """Yield what is recorded of a row: a suffix for its label, the record's name, and the scores."""
    for name, record in records.items():
        suffix = changed(record)
        if isinstance(record, RunRecord) and row.run and row.run.preset == record.preset:
            for of in row.run.filled_by(len(record.metrics.seeds), bool(record.metrics.ensemble)):
                cells = [score_cell(name, record, of, *item) for item in one.published(row).items()]
                yield suffix + (", ensemble" if (row.run.of, of) == ("all", "ensemble") else ""), name, cells
        elif isinstance(record, TableRecord) and (record.table, record.preset) == (one.key, one.preset):
            for ours in record.rows:
                if (ours.get("row"), ours.get("column")) == row.place:
                    yield suffix, name, [figure(ours[s.name], ours[f"{s.name}_std"]) for s in one.scores]


def score_cell(name: str, record: RunRecord, of: str, score: str, published: str) -> str:
    """Return a score of a run, with its deviation and the number of models; empty if it has none.

    Raises:
        ValueError: if it has none where the paper gives a figure.
    """
    seeds = record.scores()
    values = [scores[score] for scores in seeds.values() if score in scores]
    models = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    if len(values) < len(seeds):
        if not published:
            return ""
        raise ValueError(
            f"experiments/records/{name}.json: metrics.seeds: found no score {score}, which its row "
            "needs. Run stage evaluate again, then record."
        )
    if of == "ensemble":
        ensemble = (record.metrics.ensemble or {}).get(score)
        return "" if ensemble is None else f"{figure(ensemble)} ({len(seeds)} models)"
    if of == "best":
        return f"{figure(max(values))} (best of {models})"
    return f"{figure(fmean(values), (record.metrics.std or {}).get(score))} ({models})"


def changed(record: Record) -> str:
    """Return what a record changes in its preset, to follow a label; nothing if nothing."""
    texts = {key: json.dumps(value, ensure_ascii=False) for key, value in record.changes.items()}
    shown = [code(f"{key}: {text if len(text) <= LONGEST else '...'}") for key, text in texts.items()]
    return f" with {', '.join(shown)}" if shown else ""


def origin(name: str, record: Record, scores: Sequence[str], marks: Marks) -> list[str]:
    """Return signatures, hardware, training time, and the commit, which links to the record."""
    used = [record.signatures[score] for score in scores if score in record.signatures]
    found = dict.fromkeys(marks.setdefault(text, f"S{len(marks) + 1}") for text in used)
    link = f"[{code(record.commit[:9])}](../experiments/records/{name}.json)"
    return [", ".join(found), *cost_cells(record.cost), link]


def cost_cells(cost: TrainingCost | None) -> list[str]:
    """Return hardware, and training time with the speed if that is known."""
    if cost is None:
        return ["not measured", "not measured"]
    hours = " and ".join(f"{figure(value)} {unit}-hours" for unit, value in cost.hours.items())
    speed = cost.target_tokens_per_second
    return [", ".join(cost.hardware), hours + ("" if speed is None else f", {speed:,.0f} target tokens/s")]


def recorded_table(one: PaperTable, name: str, record: TableRecord, marks: Marks) -> Iterator[str]:
    """Yield the lines of a table of ours: where it comes from, its rows, its picture."""
    cells = ", ".join(filter(None, origin(name, record, list(record.signatures), marks)))
    yield from [f"### Ours: `{record.preset}`{changed(record)}", ""]
    yield from [f"{cells}; test set `{record.test_set}`.", ""]
    if one.kind == "sweep" and record.rows:
        papers = {row.place: one.published(row) for row in one.rows}  # as printed: a CSV may lose a zero
        rows: list[dict[str, str]] = []
        for row in record.rows:
            printed = papers.get((row["row"], row["column"]), {})
            rows.append(row | {f"paper_{score}": text for score, text in printed.items()})
        titles = ["", ""] if any(row["column"] for row in rows) else [""]
        yield from [*row_lines(titles, rows), ""]
    elif record.rows:
        body = [[row["system"], row["beam"], *map(figure, list(row.values())[2:])] for row in record.rows]
        yield from [*table(SPEED_TITLES, body), ""]
    if record.picture:
        yield from [f"![{name}](../{record.picture})", ""]


def details(name: str, record: Record) -> Iterator[str]:
    """Yield the lines of a record that the tables do not have."""
    path = f"experiments/records/{name}.json"
    yield from [f"### {name}", "", f"[{path}](../{path}), {record.date}, commit `{record.commit}`.", ""]
    yield from [f"- preset `{record.preset}`{changed(record)}", f"- test set `{record.test_set}`"]
    if isinstance(record, RunRecord):
        yield from (score_line(f"seed {seed}", scores) for seed, scores in record.scores().items())
        kept = record.metrics.without_replacement
        for seed, scores in kept.seeds.items() if kept else ():
            yield score_line(f"seed {seed}, unknown words kept", scores)
    if record.cost is None:
        yield from ["- hardware and time of training: not measured", ""]
    else:
        yield from [*(f"- {text}" for text in cost_cells(record.cost) if text)]
        yield from [f"- PyTorch {', '.join(record.cost.torch)}", ""]


def score_line(title: str, scores: Scores) -> str:
    """Return an entry of a list with each score."""
    texts = [f"{name} {figure(value)}" for name, value in scores.items()]
    return f"- {title}: {', '.join(texts).replace('perplexity', 'validation perplexity', 1)}"


def main() -> int:
    """Make the page of the repository that is the working directory; return the exit status."""
    try:
        paper = read_paper(Path("experiments"))
        text = page(paper, read_records(Path("experiments", "records"), paper))
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    write_lines(Path("docs", "results.md"), text.split("\n")[:-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
