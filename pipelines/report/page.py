"""The report: one self-contained HTML page, which loads nothing from the network or other files."""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from convs2s.messages import visible
from pipelines.report import charts, tables
from pipelines.report.attention import heat_maps
from pipelines.report.examples import choose_examples
from pipelines.report.run import Run, grouped

HERE = Path(__file__).parent


def render(runs: Sequence[Run]) -> str:
    """Return the page about one run, or several side by side."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["visible"] = visible
    return environment.get_template("page.html").render(
        runs=runs,
        several=len(runs) > 1,
        tables=tables,
        charts=charts,
        same_scores=grouped(runs, lambda run: f"{run.test_set} {run.signatures}"),
        same_test_set=grouped(runs, lambda run: run.test_set),  # only these are compared
        choose_examples=choose_examples,
        heat_maps=heat_maps,
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
    )
