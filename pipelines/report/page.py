"""The page about one run, or several side by side."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.style
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from convs2s.base.files import write_lines
from convs2s.base.messages import visible
from convs2s.score.pictures import plot_curves
from convs2s.text.words.tokenization import SHOWN_SPACES
from pipelines.report import sentences, significance, tables
from pipelines.report.inputs import mark
from pipelines.report.run import Run, group, open_run
from pipelines.report.scores import format_scores, list_remarks


def write(names: Sequence[str], root: Path, out: Path, digest: str = "") -> None:
    """Write the page, with a mark of what it is made from if there is a digest; names as for `open_run`."""
    with TemporaryDirectory() as temporary:
        runs = [open_run(name, root, Path(temporary)) for name in dict.fromkeys(names)]
        text = render_page(runs)
    write_lines(out, [*text.rstrip("\n").split("\n"), *([mark(digest)] if digest else [])])


def render_page(runs: Sequence[Run]) -> str:
    """Return the page about one run, or several side by side; it loads nothing from other files or hosts."""
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters["table"] = tables.to_html
    page = environment.get_template("page.html").render(
        runs=runs,
        title=", ".join(dict.fromkeys(run.sections["package"]["name"] for run in runs)),
        several=len(runs) > 1,
        same_scores=group(runs, lambda run: f"{run.test_set} {run.json('evaluation/signatures.json')}"),
        same_test_set=group(runs, lambda run: run.test_set),  # only these are compared
        same_corpus=group(runs, lambda run: str(run.json("filtered/report.json"))),
        curves=draw_curves(runs),
        comparisons=significance.compare_all(runs),
        list_heat_maps=list_heat_maps,
        list_remarks=list_remarks,
        format_scores=format_scores,
        tables=tables,
        sentences=sentences,
        significance=significance,
    )
    return visible(page).translate(SHOWN_SPACES)  # a corpus may have control characters, and marks of spaces


def draw_curves(runs: Sequence[Run]) -> str:
    """Return a picture of the curves of all trainings."""
    folders = {
        f"{run.name}, seed {seed}": run.folder / f"data/trained/{seed}/curves"
        for run in runs
        for seed in run.seeds
    }
    stream = io.BytesIO()
    with matplotlib.style.context(["default", {"svg.hashsalt": "curves"}]):  # equal runs, equal pages
        plot_curves(folders).savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return embed(stream.getvalue(), "svg+xml")


def list_heat_maps(run: Run) -> list[str]:
    """Return the pictures of attention of the stage evaluate."""
    pictures = run.folder / "data" / "evaluation" / "pictures"
    return [embed(path.read_bytes(), "png") for path in sorted(pictures.glob("*.png"))]


def embed(picture: bytes, kind: str) -> str:
    """Return a picture as the address of an image."""
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
