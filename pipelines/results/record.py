"""Record what was run, for docs/results.md.

    python -m pipelines.results.record NAME                           the run whose outputs are in data/
    python -m pipelines.results.record NAME --table table5 --rows data/sweeps/table5.table.csv
                                   --experiments data/sweeps/table5.csv
    python -m pipelines.results.record NAME --table table3 --rows FILE    FILE: what benchmarks.table3 printed
    python -m pipelines.results.record NAME --table figure3 --picture docs/pictures/FILE.png

Writes experiments/records/NAME.json, and NAME.csv with --rows; `dvc repro results` then makes the page.
Nothing is recorded whose origin is not certain: outputs must be those of params.yaml, code and data
as they are, and the code committed.
"""

import argparse
import csv
import datetime
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from convs2s.config.load import load_params
from convs2s.score.identity import TestSetIdentity
from convs2s.text.corpus.files import atomic_path, read_lines, write_lines
from convs2s.train.cost import file_name
from pipelines.results.experiments import sweep_record
from pipelines.results.page import page
from pipelines.results.paper import read_paper
from pipelines.results.provenance import Refused, check_fresh, commit, cost_of, dumped, preset_of
from pipelines.results.reading import checked
from pipelines.results.records import RECORD, TABLE_COLUMNS, RunRecord, read_records, read_rows

NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
OURS = r"^Ours: (?P<test_set>.+: [\d,]+ lines, sha256 [0-9a-f]{64}); BLEU (?P<signature>\S+)\.$"
"""The last line of benchmarks.table3."""
Rows = list[list[str]]


def run_record(root: Path) -> dict[str, Any]:
    """Return the record of the run whose outputs are in data/.

    Raises:
        Refused: if outputs are missing, or their origin is not certain.
    """
    trained, evaluation = root / "data" / "trained", root / "data" / "evaluation"
    seeds = [str(seed) for seed in load_params(root / "params.yaml").train.seeds]
    metrics = read_json(evaluation / "metrics.json")
    trainings = {seed: read_json(trained / seed / "metrics.json") for seed in seeds}
    weights = [existing(trained / seed / "model" / "weights.safetensors") for seed in seeds]
    return {
        "kind": "run",
        **origin_of_outputs(root),
        "cost": dumped(cost_of(map(file_name, weights), kept_costs(root))),
        "metrics": metrics,
        "perplexities": {seed: one["validation_perplexity"] for seed, one in trainings.items()},
    }


def origin_of_outputs(root: Path) -> dict[str, Any]:
    """Return where the outputs in data/ come from: preset, changes, commit, date, signatures, test set.

    Raises:
        Refused: if that is not certain.
    """
    evaluation = root / "data" / "evaluation"
    signatures = read_json(evaluation / "signatures.json")
    test_set = TestSetIdentity.read(existing(evaluation / "test_set.json"))
    preset, changes = preset_of(load_params(root / "params.yaml"), root / "experiments")
    head = commit(root)
    check_fresh(root)
    return {
        **{"preset": preset, "changes": changes, "commit": head, "date": today()},
        **{"signatures": signatures, "test_set": str(test_set)},
    }


def today() -> str:
    """Return the date of recording."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def existing(path: Path) -> Path:
    """Return the path of a stage's output.

    Raises:
        Refused: if it is not there.
    """
    if not path.is_file():
        raise Refused(f"{path} does not exist; wanted the outputs of all stages: run dvc repro, then record.")
    return path


def read_json(path: Path) -> Any:
    """Read an output of a stage."""
    return json.loads(existing(path).read_text(encoding="utf-8"))


def kept_costs(root: Path) -> list[Path]:
    """Return the folders where trainings have left what they took."""
    return sorted(root.glob("data/checkpoints/*/costs"))


def speed_of(root: Path, others: Sequence[Path]) -> float | None:
    """Return target tokens a second of the trainings in data/; None if it is not known of one.

    Args:
        others: repositories beside this one, from which a training may have come by DVC's cache.
    """
    seeds = load_params(root / "params.yaml").train.seeds
    weights = [root / "data" / "trained" / str(seed) / "model" / "weights.safetensors" for seed in seeds]
    if not all(path.is_file() for path in weights):
        return None
    kept = [folder for place in (root, *others) for folder in kept_costs(place)]
    cost = cost_of(map(file_name, weights), kept)
    return None if cost is None else cost.target_tokens_per_second


def table_record(root: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Rows]:
    """Return the record of a table of the paper in ours, and its rows, header first; none without --rows.

    Raises:
        Refused: if there is no such table, or nothing to record of it, or its origin is not certain.
    """
    try:
        kind = read_paper(root / "experiments" / "records" / "paper.yaml").table(options.table).kind
    except KeyError as error:
        raise Refused(f"--table: {error.args[0]}.") from None
    if options.rows is None and options.picture is None:
        raise Refused("--table: found neither --rows FILE nor --picture FILE; wanted one, or both.")
    if kind == "sweep" and options.experiments is None:
        raise Refused(
            f"--table {options.table}: wanted --experiments data/sweeps/NAME.csv, by which to know what ran."
        )
    record = {"kind": "table", "table": options.table, "picture": inside(root, options.picture)}
    if kind == "sweep":
        record |= sweep_record(root, options.experiments, kept_costs(root)) | {"date": today()}
        record["signatures"] = {"bleu": record["signatures"]["bleu_tokenized"]}  # as tables of sweeps have it
    else:  # the model's training is not what these measure
        record |= origin_of_outputs(root) | {"cost": None}
    if options.rows is None:
        return record, []
    if kind == "speed":
        rows, signature, test_set = read_speed(options.rows)
        return record | {"signatures": {"bleu": signature}, "test_set": test_set}, rows
    return record, [
        list(TABLE_COLUMNS[kind]),
        *(list(row.values()) for row in read_rows(options.rows, kind, more=True)),
    ]


def read_speed(path: Path) -> tuple[Rows, str, str]:
    """Return the rows of what benchmarks.table3 printed, header first, its signature and its test set.

    Raises:
        Refused: if there is no row of ours, or no last line with both.
    """
    lines = list(read_lines(path))
    found = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line[:6] == "| ours"]
    last = re.search(OURS, "\n".join(lines), re.MULTILINE)
    if not found or last is None:
        raise Refused(
            f"{path} is not what benchmarks.table3 prints: wanted rows that begin with '| ours', and a "
            "last line with test set and signature. Run it again: python -m benchmarks.table3 ... > FILE"
        )
    rows = [[name, *(value.replace(",", "") for value in values)] for name, *values in found]
    return [list(TABLE_COLUMNS["speed"]), *rows], last["signature"], last["test_set"]


def inside(root: Path, picture: Path | None) -> str | None:
    """Return a picture's path from the repository's root.

    Raises:
        Refused: if it is not there, or not in the repository.
    """
    if picture is None:
        return None
    path, home = (root / picture).resolve(), root.resolve()
    if not path.is_file() or not path.is_relative_to(home):
        raise Refused(f"--picture: {picture} is no file of the repository; wanted one in docs/pictures, say.")
    return path.relative_to(home).as_posix()


def write(root: Path, name: str, record: dict[str, Any], rows: Rows) -> None:
    """Write a record and its rows, which replace those of this name.

    Raises:
        ValueError: if it is not valid, or the page could not be made with it; nothing is written then.
    """
    path = root / "experiments" / "records" / f"{name}.json"
    paper = read_paper(path.with_name("paper.yaml"))
    found, known = checked(RECORD, record, path), read_records(path.parent, paper)
    if isinstance(found, RunRecord):
        page(paper, replace(known, runs={**known.runs, name: found}))
    table = path.with_suffix(".csv")
    table.unlink(missing_ok=True)
    if rows:
        with atomic_path(table) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)
    write_lines(path, json.dumps(record, indent=2, ensure_ascii=False).split("\n"))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.results.record",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="of the files in results/: small letters, digits and hyphens")
    add("--table", metavar="KEY", help="table of experiments/records/paper.yaml that rows and picture are of")
    add("--rows", type=Path, metavar="FILE", help="rows of the table")
    add("--picture", type=Path, metavar="FILE", help="picture of the table, in the repository")
    add("--experiments", type=Path, metavar="FILE", help="what the flow sweep wrote, for a sweep's origin")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what is in the repository that is the working directory; return the exit status."""
    options, root = parse(arguments), Path()
    try:
        if not NAME.fullmatch(options.name):
            raise Refused(f"NAME: found {options.name!r}; wanted small letters, digits and hyphens.")
        record, rows = table_record(root, options) if options.table else (run_record(root), [])
        write(root, options.name, record, rows)
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"Recorded in experiments/records/{options.name}.json. Next: dvc repro results; "
        "git add experiments docs/results.md"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
