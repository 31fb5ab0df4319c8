"""What the Prefect UI shows of a stage's outputs."""

import base64
import json
import re
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from prefect import get_run_logger
from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_table_artifact,
)

from pipelines import shell
from pipelines.flows.graph import Stage
from pipelines.flows.workspace import ROOT

MOST_PICTURES = 2  # heat maps; the others are in the folder


def key(*parts: str) -> str:
    """Return an artifact's key: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(filter(None, parts)).lower()).strip("-")


def image(path: Path, name: str, description: str) -> None:
    """Show a PNG; it travels within the artifact, for the server need not see this machine's files."""
    data = base64.b64encode(path.read_bytes()).decode()
    create_image_artifact(f"data:image/png;base64,{data}", key=name, description=description)


def show(stage: Stage, root: Path, label: str) -> None:
    """Show what a stage has given: a training's curves and metrics, an evaluation's scores and examples."""
    if stage.kind == "train":
        show_curves(stage, root / stage.outputs["curves"], label)
        metrics = json.loads((root / stage.outputs["metrics.json"]).read_text(encoding="utf-8"))
        create_table_artifact([metrics], key=key("metrics", label, stage.name), description=stage.name)
    elif stage.kind == "evaluate":
        show_scores(stage, root, label)


def show_failure(stage: Stage, root: Path, label: str) -> None:
    """Show how far a training came that did not end well."""
    if stage.work and (curves := root / stage.work / "curves").is_dir():
        show_curves(stage, curves, label, " until it failed")


def show_curves(stage: Stage, curves: Path, label: str, note: str = "") -> None:
    """Show the curves of a training as a picture."""
    from convs2s.score.curves import draw_curves  # noqa: PLC0415  # drawing takes a second to load

    with TemporaryDirectory() as folder:
        picture = Path(folder) / "curves.png"
        draw_curves(curves, picture)
        image(picture, key("curves", label, stage.name), f"Curves of {stage.name}{note}")


def show_scores(stage: Stage, root: Path, label: str) -> None:
    """Show the score table with its signatures, example translations and attention."""
    import pandas as pd  # noqa: PLC0415  # half a second

    scores = pd.read_csv(root / stage.outputs["scores.csv"], dtype={"member": str})
    signatures = json.loads((root / stage.outputs["signatures.json"]).read_text(encoding="utf-8"))
    create_table_artifact(
        json.loads(scores.to_json(orient="records")),
        key=key("scores", label),
        description="Signatures:\n\n" + "\n".join(f"- {name}: `{text}`" for name, text in signatures.items()),
    )
    examples = pd.read_csv(
        root / stage.outputs["examples.tsv"], sep="\t", dtype=str, quoting=3, na_filter=False
    )
    create_markdown_artifact(examples_in_markdown(examples), key=key("examples", label))
    pictures = root / stage.outputs["pictures"]
    for path in sorted(pictures.glob("attention-*.png"))[:MOST_PICTURES]:
        image(path, key(path.stem, label), "Attention: source words down, translation across (Fig. 3)")
    if (pictures / "scores.png").is_file():
        image(pictures / "scores.png", key("score-plot", label), "Scores by model and by source length")


def show_report(stages: Iterable[Stage], root: Path, name: str) -> None:
    """Write the report on a finished run, and link it; a pipeline without scores has none.

    Args:
        root: of the run, this clone or a copy of it; the report stays in this clone.
        name: of the run's experiment; empty for this clone's own run.
    """
    if not any("scores.csv" in stage.outputs for stage in stages):
        return
    page = ROOT / "data" / f"report{name and '-' + name}.html"
    try:
        shell.run(sys.executable, "-m", "pipelines.report", str(root), "--out", str(page), cwd=ROOT)
        where = f"On {socket.gethostname()}; browsers open a file only from their address bar: `{page}`"
        create_link_artifact(page.as_uri(), page.name, key=key("report", name), description=where)
        get_run_logger().info("Report: %s", page.as_uri())
    except Exception as error:  # whatever it is, the run's results are safe in DVC
        get_run_logger().warning("No report: %s: %s", type(error).__name__, error)


def examples_in_markdown(examples: "pd.DataFrame") -> str:  # type: ignore[name-defined]
    """Return example translations as a markdown document."""
    blocks = ["# Example translations"]
    for number, (line, rows) in enumerate(examples.groupby("line", sort=False), start=1):
        blocks.append(f"## {number}. Sentence {line}")
        first = rows.iloc[0]
        cells = [("source", first["source"]), ("reference", first["reference"])]
        cells += [(f"model {row['model']}", row["hypothesis"]) for _, row in rows.iterrows()]
        blocks.append("\n".join(["| | |", "|---|---|", *(f"| {a} | {literal(b)} |" for a, b in cells)]))
    return "\n\n".join(blocks) + "\n"


def literal(text: str) -> str:
    """Return text so that markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~-])", r"\\\1", text)
