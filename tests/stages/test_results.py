"""Stage results: the page in git is the one that the stage makes."""

from pathlib import Path

import pytest

from pipelines.stages.results import run

ROOT = Path(__file__).parents[2]


def test_the_page_in_git_is_up_to_date(tmp_path: Path) -> None:
    """A record, or a row of the paper, without its page would be a page that is wrong: dvc repro results."""
    run(ROOT / "experiments" / "records", tmp_path / "results.md")
    made = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert made == (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert made.endswith("\n") and not made.endswith("\n\n")


def test_a_folder_without_the_papers_rows_is_no_folder_of_results(tmp_path: Path) -> None:
    """By name."""
    with pytest.raises(FileNotFoundError, match=r"paper\.yaml does not exist; wanted"):
        run(tmp_path, tmp_path / "results.md")
