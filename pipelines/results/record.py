"""Record what was run, and show it in docs/results.md.

    python -m pipelines.results.record NAME                           the run whose outputs are in data/
    python -m pipelines.results.record NAME --table table5 --rows data/sweeps/table5.table.csv
                                   --experiments data/sweeps/table5.csv
    python -m pipelines.results.record NAME --table table3 --rows FILE    FILE: of benchmarks.table3 --json
    python -m pipelines.results.record NAME --table figure3 --picture docs/pictures/FILE.png

Writes experiments/records/NAME.json and the page. Nothing is recorded unless its
origin is certain: the outputs must be up to date with params.yaml, code and data, and the code committed.
"""

import argparse
import csv
import datetime
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from convs2s.text.corpus.files import write_lines
from convs2s.text.corpus.json_files import write_json
from pipelines.results.ablation_report import read_experiments
from pipelines.results.costs import cost_of, weights
from pipelines.results.page import page
from pipelines.results.paper import Paper, read_paper
from pipelines.results.provenance import REPRODUCE, check_fresh, fetch, origin_of
from pipelines.results.reading import checked, existing, read
from pipelines.results.records import RECORD, SWEEP, MeasuredSpeed, TableRow, read_records
from pipelines.shell import CommandFailed


def run_record(root: Path) -> dict[str, Any]:
    """Return the record of the run whose outputs are in data/."""
    metrics = read(root / "data" / "evaluation" / "metrics.json", REPRODUCE)
    folders = [existing(path, REPRODUCE).parents[1] for path in weights(root)]
    trainings = {folder.name: read(folder / "metrics.json", REPRODUCE) for folder in folders}
    record = {"kind": "run", **origin_of(root, [root]), "cost": cost_of([root], [root]), "metrics": metrics}
    check_fresh(root)
    return record | {"perplexities": {seed: one["validation_perplexity"] for seed, one in trainings.items()}}


def table_record(root: Path, paper: Paper, options: argparse.Namespace) -> dict[str, Any]:
    """Return the record of a table of the paper, rows included; raise ValueError if an option is wrong."""
    option, rows, picture = f"--table {options.table}", options.rows, options.picture
    if options.table not in paper:
        raise ValueError(f"--table: found {options.table!r}; wanted one of: {', '.join(paper)}.")
    if (kind := paper[options.table].kind) == "runs":
        raise ValueError(f"{option}: its rows are runs; record each without --table.")
    if rows is None and picture is None:
        raise ValueError(f"{option}: found neither --rows FILE nor --picture FILE; wanted one, or both.")
    if kind == "sweep" and options.experiments is None:
        raise ValueError(f"{option}: wanted --experiments data/sweeps/NAME.csv, which says what ran.")
    if picture is not None:
        path = (root / picture).resolve()
        if not path.is_file() or not path.is_relative_to(root.resolve()):
            raise ValueError(f"--picture: {picture} is no file of the repository; put it into docs/pictures.")
        picture = path.relative_to(root.resolve()).as_posix()
    record = {"kind": "table", "table": options.table, "picture": picture}
    if kind == "sweep":
        return record | sweep_origin(root, options) | ({"rows": sweep_rows(rows)} if rows else {})
    record |= origin_of(root, [root]) | {"cost": None}  # these do not measure the model's training
    check_fresh(root)
    if rows is None:
        return record
    content = read(rows, "python -m benchmarks.table3 ... --json FILE writes it")
    measured: MeasuredSpeed = checked(MeasuredSpeed, content, rows)
    return record | measured.model_dump()


def sweep_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table that a sweep wrote, as text; raise ValueError if one is incomplete."""
    wanted = {*SWEEP, None}  # under None there are values beyond the last column
    with existing(path, "make sweep writes it").open(encoding="utf-8", newline="") as stream:
        rows = [{k: v for k, v in row.items() if k in wanted} for row in csv.DictReader(stream)]
    return list(checked(list[TableRow], rows, path))


def sweep_origin(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return where the experiments of a sweep come from; raise ValueError if none is left."""
    experiments = read_experiments(options.experiments, options.table)
    done = experiments.reindex(columns=["failed"])["failed"].isna()
    names = experiments["experiment"][done].unique()
    if not len(names):
        raise ValueError(f"{options.experiments}: all experiments failed; wanted one that did not.")
    with TemporaryDirectory() as folder:
        workspaces = [fetch(root, name, Path(folder, name)) for name in names]
        origin = origin_of(root, workspaces) | {"cost": cost_of(workspaces, [root])}
    return origin | {"signatures": {"bleu": origin["signatures"]["bleu_tokenized"]}}  # of tables of sweeps


def write(root: Path, paper: Paper, name: str, record: dict[str, Any]) -> None:
    """Write a record, and the page with it, if all are valid; it replaces one of this name."""
    path = root / "experiments" / "records" / f"{name}.json"
    records = read_records(path.parent) | {name: checked(RECORD, record, path)}
    text = page(paper, dict(sorted(records.items())))
    write_json(path, record)
    write_lines(root / "docs" / "results.md", text.split("\n")[:-1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what is in the repository that is the working directory; return the exit status."""
    form = argparse.RawTextHelpFormatter
    command = "python -m pipelines.results.record"
    parser = argparse.ArgumentParser(prog=command, description=__doc__, formatter_class=form)
    add = parser.add_argument
    add("name", metavar="NAME", help="of the record: lowercase letters, digits and hyphens")
    add("--table", metavar="KEY", help="table of the paper that rows and picture belong to")
    add("--rows", type=Path, metavar="FILE", help="rows; of Table 3, from benchmarks.table3 --json")
    add("--picture", type=Path, metavar="FILE", help="of the table, in the repository")
    add("--experiments", type=Path, metavar="FILE", help="what the flow sweep wrote")
    options, root = parser.parse_args(arguments), Path()
    try:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", options.name):
            raise ValueError(f"NAME: found {options.name!r}; wanted lowercase letters, digits and hyphens.")
        paper = read_paper(root / "experiments")
        record = table_record(root, paper, options) if options.table else run_record(root)
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        write(root, paper, options.name, record | {"date": date})
    except (ValueError, FileNotFoundError, CommandFailed) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Recorded in experiments/records/{options.name}.json. Next: git add experiments docs/results.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
