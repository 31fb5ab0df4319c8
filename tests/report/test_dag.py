"""The picture of the DAG in the documentation."""

from pathlib import Path

from pipelines.report.dag import BLOCK, PAGE, mermaid
from tests.pipeline import bare_repository
from tests.report.made import ROOT


def test_the_picture_is_that_of_the_pipeline(tmp_path: Path) -> None:
    """The picture shows the default; after an edit of dvc.yaml, run `python -m pipelines.report.dag`."""
    found = BLOCK.search((ROOT / PAGE).read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == mermaid(bare_repository(tmp_path))
    assert "    train --> tune\n" in found[0]
    assert "train --> translate" not in found[0]  # implied by other arrows
