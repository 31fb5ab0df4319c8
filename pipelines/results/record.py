"""Record what was run, and show it in docs/results.md.

    python -m pipelines.results.record NAME                           the run whose outputs are in data/
    python -m pipelines.results.record NAME --table table5 --rows data/sweeps/table5.table.csv
                                   --experiments data/sweeps/table5.csv
    python -m pipelines.results.record NAME --table table3 --rows FILE    FILE: what benchmarks.table3 printed
    python -m pipelines.results.record NAME --table figure3 --picture docs/pictures/FILE.png

Writes experiments/records/NAME.json, NAME.csv if there are rows, and the page. Nothing is recorded unless its
origin is certain: the outputs must be up to date with params.yaml, code and data, and the code committed.
"""

import argparse
import datetime
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from convs2s.config.load import load_params
from convs2s.text.corpus.files import atomic_path
from pipelines.results.costs import cost_of_workspace, weights
from pipelines.results.experiments import sweep_record
from pipelines.results.page import page
from pipelines.results.paper import Paper, read_paper
from pipelines.results.provenance import REPRODUCE, NotRecorded, check_fresh, commit, origin_of
from pipelines.results.reading import checked, existing, read
from pipelines.results.records import COLUMNS, RECORD, kind_of, read_records, read_rows
from pipelines.shell import CommandFailed

NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
OURS = re.compile(
    r"^Ours: (?P<set>.+: [\d,]+ lines, sha256 [0-9a-f]{64}); BLEU (?P<bleu>\S+)\.$", re.MULTILINE
)
"""The last line that benchmarks.table3 prints."""


def run_record(root: Path) -> dict[str, Any]:
    """Return the record of the run whose outputs are in data/."""
    data, seeds = root / "data", load_params(root / "params.yaml").train.seeds
    metrics = read(data / "evaluation" / "metrics.json", REPRODUCE)
    trainings = {str(seed): read(data / "trained" / str(seed) / "metrics.json", REPRODUCE) for seed in seeds}
    for seed in seeds:
        existing(weights(root, seed), REPRODUCE)
    perplexities = {seed: one["validation_perplexity"] for seed, one in trainings.items()}
    record = {"kind": "run", **fresh_origin(root), "cost": cost_of_workspace(root)}
    return {**record, "metrics": metrics, "perplexities": perplexities}


def fresh_origin(root: Path) -> dict[str, Any]:
    """Return where the outputs in data/ come from; raise NotRecorded if that is not certain."""
    origin = origin_of(root, root / "experiments") | {"commit": commit(root)}
    check_fresh(root)
    return origin


def table_record(root: Path, paper: Paper, options: argparse.Namespace) -> dict[str, Any]:
    """Return the record of a table of the paper, rows included; raise NotRecorded if an option is wrong."""
    kind, option = kind_of(options.table, paper, "--table"), f"--table {options.table}"
    if kind == "runs":
        raise NotRecorded(f"{option}: its rows are runs; record each without --table.")
    if options.rows is None and options.picture is None:
        raise NotRecorded(f"{option}: found neither --rows FILE nor --picture FILE; wanted one, or both.")
    if kind == "sweep" and options.experiments is None:
        raise NotRecorded(f"{option}: wanted --experiments data/sweeps/NAME.csv, which tells what ran.")
    record = {"kind": "table", "table": options.table, "picture": inside(root, options.picture)}
    if kind == "sweep":
        record |= sweep_record(root, options.experiments)
        record["signatures"] = {"bleu": record["signatures"]["bleu_tokenized"]}  # as tables of sweeps have it
    else:
        record |= fresh_origin(root) | {"cost": None}  # these do not measure the model's training
    if options.rows is None:
        return record
    return record | (read_speed(options.rows) if kind == "speed" else {"rows": read_rows(options.rows, kind)})


def read_speed(path: Path) -> dict[str, Any]:
    """Return rows, signature and test set of what benchmarks.table3 printed, or raise NotRecorded."""
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line.startswith("| ours")]
    last = OURS.search(text)
    if not lines or last is None:
        raise NotRecorded(
            f"{path} is not what benchmarks.table3 prints: wanted rows that begin with '| ours', and a last "
            "line with test set and signature. Run it again: python -m benchmarks.table3 ... > FILE"
        )
    rows = []
    for line in lines:
        name, *values = (cell.strip() for cell in line.strip("| ").split("|"))
        rows.append(dict(zip(COLUMNS["speed"], [name, *(v.replace(",", "") for v in values)], strict=True)))
    return {"rows": rows, "signatures": {"bleu": last["bleu"]}, "test_set": last["set"]}


def inside(root: Path, picture: Path | None) -> str | None:
    """Return a picture's path from the repository's root; raise NotRecorded if it is no file in there."""
    if picture is None:
        return None
    path, home = (root / picture).resolve(), root.resolve()
    if not path.is_file() or not path.is_relative_to(home):
        raise NotRecorded(f"--picture: {picture} is no file of the repository; put it into docs/pictures.")
    return path.relative_to(home).as_posix()


def write(root: Path, paper: Paper, name: str, record: dict[str, Any]) -> None:
    """Write a record, its rows and the page with it, if all are valid; they replace those of this name."""
    path = root / "experiments" / "records" / f"{name}.json"
    records = read_records(path.parent, paper) | {name: checked(RECORD, record, path)}
    texts = {root / "docs" / "results.md": page(paper, dict(sorted(records.items())))}
    path.with_suffix(".csv").unlink(missing_ok=True)
    if rows := record.pop("rows", None):
        texts[path.with_suffix(".csv")] = pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")
    texts[path] = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    for file, text in texts.items():
        with atomic_path(file) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what is in the repository that is the working directory; return the exit status."""
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.results.record", description=__doc__, formatter_class=form
    )
    parser.add_argument("name", metavar="NAME", help="of the record: lowercase letters, digits and hyphens")
    parser.add_argument("--table", metavar="KEY", help="table of the paper that rows and picture belong to")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="rows of the table")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="picture of the table, in the repository"
    )
    parser.add_argument("--experiments", type=Path, metavar="FILE", help="what the flow sweep wrote")
    options, root = parser.parse_args(arguments), Path()
    try:
        if not NAME.fullmatch(options.name):
            raise NotRecorded(f"NAME: found {options.name!r}; wanted lowercase letters, digits and hyphens.")
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
