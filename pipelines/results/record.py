"""Record results, and show them in docs/results.md.

    python -m pipelines.results.record NAME                   the run whose outputs are in data/
    python -m pipelines.results.record NAME --table table5    outputs of make sweep TABLE=table5 (data/sweeps)

Writes experiments/records/NAME.json, for a sweep docs/pictures/NAME.png, and the page. Nothing is recorded
unless its origin is certain: the outputs must be up to date with params.yaml, code and data, and the code
must be committed.
"""

import argparse
import datetime
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from convs2s.config.load import load_params
from convs2s.config.model import ModelParams
from convs2s.text.corpus.files import write_lines
from convs2s.text.corpus.json_files import write_json
from pipelines.results.ablation_report import compare, draw
from pipelines.results.commands import recorded_params
from pipelines.results.costs import cost_of, weights
from pipelines.results.page import page
from pipelines.results.paper import Paper, Table, read_paper
from pipelines.results.provenance import REPRODUCE, check_fresh, fetch, origin_of
from pipelines.results.reading import checked, existing, read
from pipelines.results.records import RECORD, RunRecord, SweepRecord, SweepRow, read_records
from pipelines.shell import CommandFailed

Origins = dict[tuple[str, str], dict[str, Any]]
"""The origin of each row's results, by its place in the table."""


def run_record(root: Path) -> dict[str, Any]:
    """Return the record of the run whose outputs are in data/."""
    metrics = read(root / "data" / "evaluation" / "metrics.json", REPRODUCE)
    folders = [existing(path, REPRODUCE).parents[1] for path in weights(root)]
    trainings = {folder.name: read(folder / "metrics.json", REPRODUCE) for folder in folders}
    record = {"kind": "run", **origin_of(root, root), "cost": cost_of([root], [root]), "metrics": metrics}
    check_fresh(root)
    return record | {"perplexities": {seed: one["validation_perplexity"] for seed, one in trainings.items()}}


def sweep_record(root: Path, table: Table, name: str) -> dict[str, Any]:
    """Return the record of a sweep over a table, and draw it; raise ValueError if all experiments failed."""
    path = root / "data" / "sweeps" / f"{table.key}.csv"
    remedy = f"make sweep TABLE={table.key} writes it"
    frame = compare(table, pd.read_csv(existing(path, remedy), dtype={"row": str, "column": str}))
    done = frame[frame["experiment"].notna() & frame["failed"].isna()]
    if done.empty:
        raise ValueError(f"{path}: all experiments failed; wanted one that did not.")
    with TemporaryDirectory() as folder:
        spaces = {one: fetch(root, one, Path(folder, one)) for one in done["experiment"].unique()}
        origins = {one: origin_of(root, space) for one, space in spaces.items()}
        cost = cost_of(list(spaces.values()), [root])
    places = zip(done["row"], done["column"], strict=True)
    ours = {place: origins[one] for place, one in zip(places, done["experiment"], strict=True)}
    origin = common_origin(table, ours, recorded_params(load_params(root / "params.yaml")))
    draw(table, frame, root / "docs" / "pictures" / f"{name}.png")
    rows = json.loads(frame[list(SweepRow.model_fields)].to_json(orient="records", double_precision=15))
    return {"kind": "sweep", "table": table.key, "rows": rows, "cost": cost, **origin}


def common_origin(table: Table, ours: Origins, own: dict[str, Any]) -> dict[str, Any]:
    """Return the origin of a sweep, with its initial parameters.

    Args:
        own: the current values of params.yaml, for parameters that every row sets itself.

    Raises:
        ValueError: if rows differ in more than what the table sets.
    """
    first = next(iter(ours.values()))
    shared = {
        k: v for k, v in first["params"].items() if all(one["params"].get(k) == v for one in ours.values())
    }
    base = own | shared
    model = ModelParams(**{k.removeprefix("model."): v for k, v in base.items() if k.startswith("model.")})
    for row in (row for row in table.rows if row.place in ours):
        found, wanted = ours[row.place], first | {"params": base | row.overrides(model)}
        if found != wanted:
            keys = [f"params.{k}" for k in base if found["params"].get(k) != wanted["params"][k]]
            keys += [k for k in wanted if k != "params" and found[k] != wanted[k]]
            raise ValueError(
                f"row {', '.join(filter(None, row.place))}: {' and '.join(keys)} not as in its table and "
                "the first row; wanted one sweep from one params.yaml. Run make sweep again."
            )
    return first | {"params": base, "signatures": {"bleu": first["signatures"]["bleu_tokenized"]}}


def write(root: Path, paper: Paper, name: str, record: dict[str, Any]) -> str:
    """Write a record, and the page with it, if all are valid; return the command that reproduces it.

    An existing record of this name is replaced.
    """
    path = root / "experiments" / "records" / f"{name}.json"
    new: RunRecord | SweepRecord = checked(RECORD, record, path)
    records = read_records(path.parent) | {name: new}
    text = page(paper, dict(sorted(records.items())))
    write_json(path, record)
    write_lines(root / "docs" / "results.md", text.split("\n")[:-1])
    return new.command


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the results in the repository in the working directory; return the exit status."""
    form, command = argparse.RawTextHelpFormatter, "python -m pipelines.results.record"
    parser = argparse.ArgumentParser(prog=command, description=__doc__, formatter_class=form)
    parser.add_argument("name", metavar="NAME", help="of the record: lowercase letters, digits and hyphens")
    parser.add_argument("--table", metavar="TABLE", help="table of the sweep")
    options, root = parser.parse_args(arguments), Path()
    try:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", options.name):
            raise ValueError(f"NAME: found {options.name!r}; wanted lowercase letters, digits and hyphens.")
        paper = read_paper(root / "experiments")
        sweeps = [key for key, table in paper.items() if table.is_sweep]
        if options.table not in {None, *sweeps}:
            raise ValueError(f"--table: found {options.table!r}; wanted one of {', '.join(sweeps)}.")
        table = paper.get(options.table)
        record = sweep_record(root, table, options.name) if table else run_record(root)
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        again = write(root, paper, options.name, record | {"date": date})
    except (ValueError, FileNotFoundError, CommandFailed) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Recorded in experiments/records/{options.name}.json. To reproduce it: {again}")
    print("Next: git add experiments docs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
