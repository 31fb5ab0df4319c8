"""Write a self-contained page about one run, or several side by side.

python -m pipelines.report                          the run in this repository: data/report.html
python -m pipelines.report . HEAD~1 my-experiment   folders, revisions, experiments: data/comparison.html

The page about the run in this repository is left as it is if all that it was made from is the same.
"""

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from pipelines.check import check_merge
from pipelines.report.inputs import digest_inputs, is_made_from
from pipelines.report.scores import summarize


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report for the repository in the working directory; return the exit status."""
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser("python -m pipelines.report", description=__doc__, formatter_class=form)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="folder, revision or experiment")
    parser.add_argument("--out", type=Path, metavar="FILE", help="page")
    parser.add_argument("--experiment", default="", help="name under which the run here is going to be saved")
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal in Latin-1 cannot show every example
    out = options.out or Path("data", "comparison.html" if options.runs else "report.html")
    try:
        check_merge(Path())
        digest = ""
        if not options.runs:
            print(summarize(Path("data"), options.experiment))
            digest = digest_inputs(Path())
        if not (digest and is_made_from(out, digest)):
            from pipelines.report.page import write  # noqa: PLC0415  # takes a second

            write(options.runs or ["."], Path(), out, digest)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Report: {out.resolve().as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
