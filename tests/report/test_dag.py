"""The picture of the DAG in the documentation."""

import shutil
from pathlib import Path

from dvc.repo import Repo

from pipelines.report.dag import BLOCK, PAGE, mermaid
from tests.presets import rendered
from tests.report.made import ROOT


def test_the_picture_is_that_of_the_pipeline(tmp_path: Path) -> None:
    """Of the default; after an edit of dvc.yaml, `python -m pipelines.report.dag` draws it again."""
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    (tmp_path / "params.yaml").write_text(rendered("generated"), encoding="utf-8")
    Repo.init(str(tmp_path), no_scm=True).close()
    found = BLOCK.search((ROOT / PAGE).read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == mermaid(tmp_path)
    assert "    train --> tune\n" in found[0]
    assert "train --> translate" not in found[0]  # follows from others
