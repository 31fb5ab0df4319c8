"""The page of results, docs/results.md: the paper's figures, ours next to them, and the origin of ours.

    python -m pipelines.results.page

generates it from paper.yaml, tables/ and records/ in experiments/. `pipelines.results.record` does so, too.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from convs2s.text.corpus.files import write_lines
from pipelines.results.ablation_report import row_lines
from pipelines.results.markdown import code, figure, table
from pipelines.results.paper import MEASURES, Paper, Row, Table, presets, read_paper
from pipelines.results.records import Record, Records, RunRecord, SweepRecord, read_records

HEAD = """\
# Results

The paper's figures (Gehring et al., 2017) and ours. `python -m pipelines.results.page` generates this page
from `experiments/`: the paper's rows are in `paper.yaml` and `tables/`, our results in `records/`, where
`python -m pipelines.results.record NAME` writes them. Experiments that we have not run are marked *not run*;
rows without a command are other systems that the paper compares with.

A row's command, run from the repository's root, reproduces its result; FORCE=1 after `make preset` discards
edits of `params.yaml`. The commit of a recorded row is that of the code that produced the result.

A score means little without its signature (S1, S2, ... below) and its test set. ± is the standard deviation
over seeds. Hours are training hours, including validation, times the number of GPUs or CPU cores used, summed
over all seeds. Target tokens/s count updates only, not validation, are totals over a training's GPUs or
cores, and are averaged over trainings; older records lack them.
"""
ORIGIN = ("signature", "hardware", "training time", "commit")
LONGEST = 60  # maximum characters of a changed value to show; the record has all
Marks = dict[str, str]  # S1, S2, ... by signature, in the order of their first use on the page


def page(paper: Paper, records: Records) -> str:
    """Return the page as Markdown; raise ValueError if a record does not belong on it."""
    known = presets(paper)
    for name, record in records.items():
        if record.preset not in known:
            raise ValueError(
                f"experiments/records/{name}.json: preset: found {record.preset!r}, which paper.yaml lacks; "
                f"wanted one of {', '.join(sorted(known))}. Add a row for your own in the table `others`."
            )
    marks: Marks = {}
    sections = [line for one in paper.values() for line in section(one, records, marks)]
    signatures = [f"- {mark}: `{text}`" for text, mark in marks.items()]
    every = table([details(name, record) for name, record in records.items()])
    return "\n".join([HEAD, *sections, "## Signatures", "", *signatures, "", "## Records", "", *every, ""])


def section(one: Table, records: Records, marks: Marks) -> list[str]:
    """Return the part of the page about one table; columns for which the paper has no figures are omitted."""
    shown = [name for name in one.scores if any(one.published(row)[name] for row in one.rows)]
    titles, lines = [f"{title}, ours" for title in one.scores.values()], []
    for row in one.rows:
        figures = one.published(row)
        papers = dict(zip([one.row, one.column] if one.column else [one.row], row.place, strict=False))
        papers |= {f"{one.scores[name]}, {one.whose}": figures[name] for name in shown}
        if one.command:
            lines.append(papers)
            continue
        command = code(row.run.command) if row.run else ""
        missing = ("", "", ["not run" if row.run else ""] * len(titles))
        for suffix, name, cells in list(results_of(one, row, records)) or [missing]:
            source = origin(name, records[name], one.scores, marks) if name else dict.fromkeys(ORIGIN, "")
            ours = {one.row: row.row + suffix, **dict(zip(titles, cells, strict=True)), **source}
            lines.append(papers | ours | {"command": code(records[name].command) if name else command})
    sweeps = {name: r for name, r in records.items() if isinstance(r, SweepRecord) and r.table == one.key}
    further = [line for name, record in sweeps.items() for line in recorded_sweep(one, name, record, marks)]
    if one.command and one.preset not in {record.preset for record in sweeps.values()}:
        further = [f"Not run: {code(one.command)}", "", *further]
    return [f"## {one.title}", "", *([one.note, ""] if one.note else []), *table(lines), "", *further]


def results_of(one: Table, row: Row, records: Records) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the recorded results of a row: a suffix for its label, the record's name, and the scores."""
    for name, record in records.items():
        if isinstance(record, RunRecord) and row.run and row.run.preset == record.preset:
            of, ensemble = row.run.of, record.metrics.ensemble is not None
            for kind in ["mean", *["ensemble"] * ensemble] if of == "all" else [of]:
                if of != "ensemble" or (ensemble and len(record.perplexities) == row.run.seeds):
                    suffix = ", ensemble" if (of, kind) == ("all", "ensemble") else ""
                    yield changed(record) + suffix, name, [record.cell(score, kind) for score in one.scores]


def changed(record: Record) -> str:
    """Return a record's changes to its preset, as the suffix of a label; empty if there are none."""
    texts = {key: json.dumps(value, ensure_ascii=False) for key, value in record.changes.items()}
    shown = [code(f"{key}: {text if len(text) <= LONGEST else '...'}") for key, text in texts.items()]
    return f" with {', '.join(shown)}" if shown else ""


def link(text: str, name: str) -> str:
    return f"[{text}](../experiments/records/{name}.json)"


def origin(name: str, record: Record, scores: Iterable[str], marks: Marks) -> dict[str, str]:
    """Return signatures, hardware, training time, and the commit, which links to the record."""
    used = [record.signatures[score] for score in scores if score in record.signatures]
    found = dict.fromkeys(marks.setdefault(text, f"S{len(marks) + 1}") for text in used)
    return {"signature": ", ".join(found), **cost(record), "commit": link(code(record.commit[:9]), name)}


def cost(record: Record) -> dict[str, str]:
    """Return hardware, and training time with the speed if known."""
    if (found := record.cost) is None:
        return {"hardware": "not measured", "training time": "not measured"}
    hours = " and ".join(f"{figure(value)} {unit}-hours" for unit, value in found.hours.items())
    speed = figure(found.target_tokens_per_second, digits=0)
    time = f"{hours}, {speed} target tokens/s" if speed else hours
    return {"hardware": ", ".join(found.hardware), "training time": time}


def recorded_sweep(one: Table, name: str, record: SweepRecord, marks: Marks) -> Iterator[str]:
    """Yield the lines of one of our sweeps: its origin, its rows next to the paper's, its picture."""
    source = ", ".join(filter(None, origin(name, record, record.signatures, marks).values()))
    yield from [f"### Ours: `{record.preset}`{changed(record)}", ""]
    yield from [f"{source}; test set `{record.test_set}`. Command: {code(record.command)}", ""]
    papers = {r.place: {f"paper_{s}": t for s, t in one.published(r).items()} for r in one.rows}
    nothing = dict.fromkeys(f"paper_{name}" for name in MEASURES)
    rows = [nothing | papers.get((row.row, row.column), {}) | row.model_dump() for row in record.rows]
    yield from [*row_lines(one, rows), ""]
    yield from [f"![{name}](pictures/{name}.png)", ""]


def details(name: str, record: Record) -> dict[str, str]:
    """Return a row of the table of records."""
    scores = []
    if isinstance(record, RunRecord):
        kept = record.metrics.without_replacement
        found = [(f"seed {seed}", values) for seed, values in record.scores().items()]
        found += [(f"seed {seed}, unknown words kept", s) for seed, s in (kept.seeds if kept else {}).items()]
        for title, values in found:
            scores.append(f"{title}: {', '.join(f'{key} {figure(value)}' for key, value in values.items())}")
    return {
        "record": link(name, name), "date": record.date, "commit": code(record.commit),
        "command": code(record.command), "test set": code(record.test_set),
        "scores": "<br>".join(scores).replace("perplexity", "validation perplexity"), **cost(record),
        "PyTorch": ", ".join(record.cost.torch) if record.cost else "",
    }  # fmt: skip


def main() -> int:
    """Write the page of the repository in the working directory; return the exit status."""
    try:
        text = page(read_paper(Path("experiments")), read_records(Path("experiments", "records")))
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    write_lines(Path("docs", "results.md"), text.split("\n")[:-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
