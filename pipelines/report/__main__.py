"""Write a self-contained page about one run, or several side by side.

    python -m pipelines.report                          the run in this repository: data/report.html
    python -m pipelines.report . HEAD~1 my-experiment   folders, revisions, experiments: data/comparison.html

The training curves also go to data/report-curves.png or data/comparison-curves.png, as a picture.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from convs2s.base.files import atomic_path, write_lines
from convs2s.base.messages import visible
from pipelines.report import charts, sentences, tables
from pipelines.report.run import Run, group, open_run

TEMPLATES = Path(__file__).parent


def write(names: Sequence[str], root: Path, out: Path) -> None:
    """Write the page and, next to it, the curves; names and errors are those of `open_run`."""
    with TemporaryDirectory() as temporary:
        runs = [open_run(name, root, Path(temporary)) for name in dict.fromkeys(names)]
        if len({run.name for run in runs}) < len(runs):  # folders of the same name
            runs = [replace(run, name=name) for run, name in zip(runs, dict.fromkeys(names), strict=True)]
        text = render(runs)
        with atomic_path(out.with_name(f"{out.stem}-curves.png")) as picture:
            charts.write_curves(runs, picture)
    write_lines(out, text.rstrip("\n").split("\n"))


def render(runs: Sequence[Run]) -> str:
    """Return the page about one run, or several side by side; it loads nothing from other files or hosts."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    page = environment.get_template("page.html").render(
        runs=runs,
        several=len(runs) > 1,
        same_scores=group(runs, lambda run: f"{run.test_set} {run.json('evaluation/signatures.json')}"),
        same_test_set=group(runs, lambda run: run.test_set),  # only these are compared
        tables=tables,
        charts=charts,
        sentences=sentences,
        style=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
    )
    return visible(page)  # a corpus may have control characters


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report for the repository in the working directory; return the exit status."""
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser("python -m pipelines.report", description=__doc__, formatter_class=form)
    add = parser.add_argument
    add("runs", nargs="*", metavar="RUN", help="folder, revision or experiment")
    add("--out", type=Path, metavar="FILE", help="page")
    options = parser.parse_args(arguments)
    out = options.out or Path("data", "comparison.html" if options.runs else "report.html")
    try:
        write(options.runs or ["."], Path(), out)
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Report: {out.resolve().as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
