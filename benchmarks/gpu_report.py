"""All GPU tests and benchmarks within minutes: `make gpu-report` writes report.json and report.md.

    make gpu-report                          trains on the default corpus, or
    make gpu-report DATA=folder              on Multi30k, whose files (train.en.gz, ...) are in the folder

It takes at most SECONDS (530) of one GPU, needs no network, and installs nothing: PYTHON (python3) must have
PyTorch and the other requirements of convs2s. Each part has a share of the time and runs in its own process,
which is killed when the time is up. If a part fails or exceeds its time, the others still run, and the report
says so. A part's output is in its log. On a machine without a GPU, --toy runs all parts at toy size on the
CPU.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks import gpu_parts
from benchmarks.gpu_parts import TOY, Sizes
from benchmarks.gpu_training import train_to_the_end
from benchmarks.gpu_translation import translations
from benchmarks.limited import Outcome, Part, Row, run_parts
from benchmarks.machine import table

SHARES = {
    "machine": 20, "tests": 75, "updates": 100, "operators": 20, "translations": 70, "training": 110,
    "processes": 25, "compiled": 110,
}  # fmt: skip
"""Seconds of each part out of the total; unused time goes to the next part."""
TITLES = {
    "machine": "Machine",
    "tests": "Tests that need a GPU",
    "updates": "Updates of the training, random data",
    "operators": "Operations of an update",
    "translations": "Table 3's protocol, random weights and assumed lengths",
    "training": "A training to the end of its schedule",
    "processes": "Training by several processes",
    "compiled": "Updates with torch.compile",
}
SPEED = "target_tokens"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    chosen = {name: SHARES[name] for name in SHARES if name in options.parts}
    scale = options.seconds / sum(chosen.values())
    parts = work(TOY if options.toy else Sizes(), options.data, options.toy)
    found = run_parts({name: (parts[name], scale * share) for name, share in chosen.items()}, options.out)
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "toy": options.toy,
        "seconds": time.monotonic() - begin,
    }
    content = {**about, "parts": {name: asdict(outcome) for name, outcome in found.items()}}
    (options.out / "report.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (options.out / "report.md").write_text(page(about, found), encoding="utf-8")
    print(options.out / "report.md")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_report", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("data/gpu-report"), help="folder of the report")
    parser.add_argument("--data", type=Path, help="folder with Multi30k's files; default: the default corpus")
    parser.add_argument("--seconds", type=float, default=530, help="time limit for all parts in total")
    parser.add_argument("--parts", nargs="+", choices=SHARES, default=list(SHARES))
    parser.add_argument("--toy", action="store_true", help="run at toy size, to check that it works")
    return parser.parse_args(arguments)


def work(sizes: Sizes, data: Path | None, toy: bool) -> dict[str, Part]:
    """Return what each part does."""
    return {
        "machine": gpu_parts.about,
        "tests": partial(gpu_parts.tests, sizes),
        "updates": partial(gpu_parts.updates, sizes),
        "operators": partial(gpu_parts.operators, sizes),
        "translations": partial(translations, sizes),
        "training": partial(train_to_the_end, data, toy),
        "processes": partial(gpu_parts.processes, sizes),
        "compiled": partial(gpu_parts.compiled, sizes),
    }


def page(about: Mapping[str, object], found: Mapping[str, Outcome]) -> str:
    """Return the report in Markdown."""
    lines = ["# Report of a GPU", "", ", ".join(f"{name} {value}" for name, value in about.items()), ""]
    for name, outcome in found.items():
        lines += [f"## {TITLES[name]}", "", f"{outcome.status}, {outcome.seconds:.0f} s", ""]
        if outcome.rows:
            lines += [*part_table(outcome.rows), ""]
    return "\n".join(lines)


def part_table(rows: Sequence[Row]) -> list[str]:
    """Return the table of a part: a column for each key that a row has."""
    flat = [flattened(row) for row in rows]
    columns = list(dict.fromkeys(key for row in flat for key in row))
    return list(table(columns, [[row.get(column, "") for column in columns] for row in flat]))


def flattened(row: Row) -> Row:
    """Return a row of the table: of speeds the median by the clock, with lowest and highest."""
    flat = {key: value for key, value in row.items() if key != SPEED}
    if SPEED in row:
        speed = row[SPEED]["per_second"]
        flat |= {"tokens/s": speed["median"], "lowest": speed["lowest"], "highest": speed["highest"]}
    return {key: "" if value is None else value for key, value in flat.items()}


if __name__ == "__main__":
    main()
