"""The page of results: the paper's figures, ours beside them, and what ours rest on."""

import math
from collections.abc import Iterator, Mapping, Sequence

from pipelines.results.cells import Grounds, cost_cells, figure, score_cell, with_changes
from pipelines.results.markdown import code, table
from pipelines.results.paper import Other, Paper, Row, Run, Table
from pipelines.results.records import Record, Records, RunRecord, TableRecord

NOT_RUN = "not run"
HEAD = """\
# Results

The paper's figures (Gehring et al., 2017) and ours. Stage `results` makes this page of the folder
`experiments/records/`, where the rows of the paper are in `paper.yaml`, and a record for each run:
`python -m pipelines.results.record NAME`.
Rows that were never run say so; rows without a command are systems of others, which the paper compares with.

A score counts with its signature (S1, S2, ... below) and test set only. ± is the standard deviation of seeds.
Hours are those of training, validation included, times GPUs, or times the CPU cores that computed, all seeds
added. Target tokens/s are those of updates alone, without validation, on all GPUs or cores of a training
together, and the mean of all trainings; records that are older than this count have none.
"""
GROUNDS = ("signature", "hardware", "time of training", "commit")
OTHER_SCORES = {"bleu": "BLEU", "bleu_tokenized": "tokenized BLEU", "chrf": "chrF2"}
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
WHOLE = {"row", "column", "system", "seeds", "beam"}
"""Columns of tables of ours that are shown as they stand; others are figures."""
PAPERS = "paper_"
"""Begins the columns of the paper's figures."""
SWEEP_TITLES = {
    "row": "", "column": "", "paper_perplexity": "PPL, paper", "paper_bleu": "BLEU, paper",
    "perplexity": "PPL, ours", "bleu": "BLEU, ours",
    "sentences_per_second": "sentences/s", "tokens_per_second": "tokens/s",
    "target_tokens_per_second": "target tokens/s",
}  # fmt: skip


def page(paper: Paper, records: Records) -> str:
    """Return the page as Markdown; it depends on nothing but the paper's rows and the records.

    Raises:
        ValueError: if a record lacks a score that its row is about.
    """
    grounds = Grounds()
    parts = [HEAD, *(section(one, records, grounds) for one in paper.tables)]
    parts.append(other_runs(paper, records, grounds))
    check_presets(paper, records)
    told = {**records.runs, **records.tables}
    parts.append(lines_of("## Signatures", grounds.signatures.lines() or ["None yet."]))
    details = [line for name in sorted(told) for line in record_lines(name, told[name])]
    parts.append(lines_of("## Records", details or ["None yet."]))
    return "\n".join(parts).rstrip("\n") + "\n"


def check_presets(paper: Paper, records: Records) -> None:
    """See that every run has a place on the page.

    Raises:
        ValueError: if the preset of one is neither of a row of the paper nor among the others.
    """
    known = paper.presets()
    for name, record in records.runs.items():
        if record.preset not in known:
            raise ValueError(
                f"experiments/records/{name}.json: preset: found {record.preset}, which paper.yaml lacks. "
                "Wanted a row with it there, or an entry under `others`."
            )


def lines_of(heading: str, lines: Sequence[str]) -> str:
    """Return a heading with what stands below it."""
    return "\n".join([heading, "", *lines, ""])


def section(one: Table, records: Records, grounds: Grounds) -> str:
    """Return the part of the page that is of one table of the paper."""
    ours = {name: record for name, record in records.tables.items() if record.table == one.key}
    rows = [cells for row in one.rows for cells in row_cells(one, row, ours, records, grounds)]
    header = ["", *(f"{s.title}, paper" for s in one.scores), *ours_header(one), *GROUNDS, "command"]
    lines = [*([one.note, ""] if one.note else []), *table(header, rows)]
    for name, record in ours.items():
        lines += ["", *recorded_table(one, name, record, records.rows.get(name, []), grounds)]
    return lines_of(f"## {one.title}", lines)


def ours_header(one: Table) -> list[str]:
    return [f"{s.title}, ours" for s in one.scores] or ["ours"]


def row_cells(
    one: Table, row: Row, ours: Mapping[str, TableRecord], records: Records, grounds: Grounds
) -> Iterator[list[str]]:
    """Yield the lines of a row: one without ours, or one for each record of it."""
    told = [row.label, *row.paper]
    count = len(ours_header(one))
    if not row.ours:
        yield [*told, *[""] * (count + len(GROUNDS) + 1)]
        return
    command = code(one.command if row.run is None else command_of(row.run))
    names = [score.name for score in one.scores]
    found = [
        [told[0] + with_changes(record), *told[1:], *cells, *grounds.cells(name, record, names), command]
        for name, record, cells in results_of(one, row, ours, records)
    ]
    yield from found or [[*told, *[NOT_RUN] * count, *[""] * len(GROUNDS), command]]


def results_of(
    one: Table, row: Row, ours: Mapping[str, TableRecord], records: Records
) -> Iterator[tuple[str, Record, list[str]]]:
    """Yield name, record and scores of all that is recorded of a row."""
    if row.run is not None:
        for name, run in records.runs.items():
            if fits(row.run, run):
                yield name, run, [score_cell(name, run, row.run.of, score.name) for score in one.scores]
        return
    for name, record in ours.items():
        if record.preset == one.preset:
            for found in records.rows.get(name, []):
                if place_of(found) == row.place:
                    yield name, record, [with_spread(found, score.name) for score in one.scores]


def place_of(found: Mapping[str, str]) -> tuple[str, str]:
    """Return row and column of a row of ours, as sweeps name them."""
    return found.get("row", ""), found.get("column", "")


def fits(run: Run, record: RunRecord) -> bool:
    """Tell whether a record is of a row: of its preset, and an ensemble of as many models."""
    if record.preset != run.preset:
        return False
    metrics = record.metrics
    return run.of != "ensemble" or (metrics.ensemble is not None and len(metrics.seeds) == run.seeds)


def command_of(run: Run) -> str:
    """Return what runs a row, from the repository's root."""
    write = f"make preset NAME={run.preset}"
    if run.seeds == 1:
        return f"{write} && dvc repro"
    seeds = ",".join(map(str, range(1, run.seeds + 1)))
    return f"{write} && dvc exp run -S 'train.seeds=[{seeds}]'"


def with_spread(row: Mapping[str, str], name: str) -> str:
    """Return a value of a sweep's row with its standard deviation, if it has one."""
    value, spread = row[name], row.get(f"{name}_std", "")
    if not value:
        return ""
    return figure(float(value)) + (f" ± {figure(float(spread))}" if spread else "")


def cell(one: Table, found: Mapping[str, str], column: str) -> str:
    """Return a value of a table of ours; the paper's figures as it prints them."""
    if column.startswith(PAPERS):
        printed = one.printed(place_of(found), column.removeprefix(PAPERS))
        return found[column] if printed is None else printed
    if column == "target_tokens_per_second" and found[column]:
        return f"{float(found[column]):,.0f}"
    return found[column] if column in WHOLE else with_spread(found, column)


def recorded_table(
    one: Table, name: str, record: TableRecord, rows: Sequence[Mapping[str, str]], grounds: Grounds
) -> Iterator[str]:
    """Yield the lines of a table of ours: what it rests on, its rows, its picture."""
    signature, hardware, time, commit = grounds.cells(name, record, list(record.signatures))
    told = [text for text in (signature, hardware, time) if text]
    yield f"### Ours: `{record.preset}`{with_changes(record)}"
    yield ""
    yield f"{', '.join([*told, commit])}; test set `{record.test_set}`."
    if rows:
        columns = [c for c in rows[0] if not c.endswith("_std") and any(row[c] for row in rows)]
        body = [[cell(one, row, column) for column in columns] for row in rows]
        yield ""
        yield from table([SWEEP_TITLES.get(column, column) for column in columns], body)
    if record.picture:
        yield ""
        yield f"![{name}](../{record.picture})"


def other_runs(paper: Paper, records: Records, grounds: Grounds) -> str:
    """Return the part of the page on runs that are no rows of the paper."""
    extra = rouge_scores(paper, records)
    header = [
        *("", "published", "validation PPL", *OTHER_SCORES.values(), *extra.values()),
        *(*GROUNDS, "command"),
    ]
    rows = [
        cells
        for other in paper.others
        for cells in other_cells(other, records, [*OTHER_SCORES, *extra], grounds)
    ]
    return lines_of("## Runs on freely available data", table(header, rows))


def rouge_scores(paper: Paper, records: Records) -> dict[str, str]:
    """Return names and titles of the ROUGE scores that some of these runs have."""
    others = {other.preset for other in paper.others}
    found = {name for run in records.runs.values() if run.preset in others for name in run.metrics.mean}
    return {name: title for name, title in ROUGE.items() if name in found}


def other_cells(
    other: Other, records: Records, scores: Sequence[str], grounds: Grounds
) -> Iterator[list[str]]:
    """Yield a line for each record of a preset and one for each ensemble; or one that says `not run`."""
    command = code(f"make preset NAME={other.preset} && dvc repro")
    found = {name: record for name, record in records.runs.items() if record.preset == other.preset}
    if not found:
        yield [
            *(other.label, other.published, NOT_RUN, *[NOT_RUN] * len(scores)),
            *([""] * len(GROUNDS)),
            command,
        ]
    for name, record in found.items():
        perplexity = figure(math.fsum(record.perplexities.values()) / len(record.perplexities))
        for of in ("mean", "ensemble") if record.metrics.ensemble else ("mean",):
            told = [s for s in scores if s in record.metrics.mean]
            cells = [score_cell(name, record, of, s) if s in told else "" for s in scores]
            label = f"{other.label}{with_changes(record)}" + (", ensemble" if of == "ensemble" else "")
            first = perplexity if of == "mean" else ""
            yield [label, other.published, first, *cells, *grounds.cells(name, record, told), command]


def score_line(of: str, scores: Mapping[str, float]) -> str:
    """Return an entry of a list that names each score."""
    return f"- {of}: {', '.join(f'{name} {figure(value)}' for name, value in scores.items())}"


def record_lines(name: str, record: Record) -> list[str]:
    """Return what a record tells and the tables do not."""
    lines = [
        f"### {name}",
        "",
        f"[experiments/records/{name}.json](../experiments/records/{name}.json), {record.date}, commit ",
    ]
    lines[-1] += f"`{record.commit}`."
    lines += ["", f"- preset `{record.preset}`{with_changes(record)}", f"- test set `{record.test_set}`"]
    if isinstance(record, RunRecord):
        for seed, scores in record.metrics.seeds.items():
            perplexity = {"validation perplexity": record.perplexities[seed]}
            lines.append(score_line(f"seed {seed}", perplexity | scores))
        kept = record.metrics.without_replacement
        if kept is not None:
            lines += [score_line(f"seed {s}, unknown words kept", kept.seeds[s]) for s in kept.seeds]
    if record.cost is None:
        lines.append("- hardware and time of training: not measured")
    else:
        lines += [f"- {text}" for text in cost_cells(record.cost) if text]
        lines.append(f"- PyTorch {', '.join(record.cost.torch)}")
    return [*lines, ""]
