"""The report as a page: parsed, and compared with the files that it is made from."""

import json
import re
import shutil
from pathlib import Path

import matplotlib.image
import pytest

from pipelines.report.__main__ import main, write
from tests.report.made import GOOD, make_run
from tests.report.reading import Page

BAD = ["die Katze schläft .", "", "ein Satz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two finished runs: `one` with one seed, and `other/one` with two seeds and more dropout."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "one", {}, {"1": GOOD})
    make_run(folder / "other" / "one", {"train.dropout": 0.3}, {"1": BAD, "2": GOOD, "ensemble": GOOD})
    return folder


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    """Return the page about the run `one`."""
    write([str(folder / "one")], folder, folder / "one.html")
    return (folder / "one.html").read_text(encoding="utf-8")


def rows(page: Page, section: str, table: int = 0) -> list[dict[str, str]]:
    """Return the rows of a table by their columns' titles."""
    titles, *cells = page.tables[section][table]
    return [dict(zip(titles, row, strict=True)) for row in cells]


def test_it_has_every_section_and_loads_nothing(folder: Path, text: str) -> None:
    """The page must open without a network, and it forbids browsers to load anything."""
    page = Page(text)
    write([str(folder / "one")], folder, folder / "again.html")
    assert (folder / "again.html").read_text(encoding="utf-8") == text
    assert len(page.texts) == 10 and all(found.strip() for found in page.texts.values())
    assert [a["href"] for tag, a in page.elements if tag == "a"] == [f"#{name}" for name in page.texts]
    assert not {tag for tag, _ in page.elements} & {"script", "link", "img", "iframe", "object", "base"}
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    assert matplotlib.image.imread(folder / "one-curves.png").std() > 0.01


def test_pictures_share_the_page(text: str) -> None:
    """matplotlib numbers the parts of each picture from 1; and black axes would vanish in dark mode."""
    ids = [attributes["id"] for _, attributes in Page(text).elements if "id" in attributes]
    assert set(re.findall(r"url\(#(\w+)\)", text)) <= set(ids) and len(ids) == len(set(ids))
    pictures = re.findall(r"<svg role.*?</svg>", text, flags=re.DOTALL)
    assert len(pictures) == 3
    assert all("fill: currentColor" in one and "#000000" not in one for one in pictures)
    assert "mathdefault" not in text  # such as 10^3, where a reader expects 1,000


def test_figures_are_those_of_the_files(folder: Path, text: str) -> None:
    """Scores must agree to the digits shown; with one seed there is no row for the mean."""
    page, metrics = Page(text), json.loads((folder / "one/data/evaluation/metrics.json").read_text())
    (row,) = rows(page, "scores")
    assert row["model"] == "seed 1"
    assert row["BLEU"] == f"{metrics['seeds']['1']['bleu']:.2f}" != "0.00"
    assert row["chrF2"] == f"{metrics['mean']['chrf']:.2f}"
    (run,) = rows(page, "runs")
    assert run == {"run": "one", "validation perplexity": "5.50", "BLEU": row["BLEU"], "chrF2": row["chrF2"]}
    counts = json.loads((folder / "one/data/filtered/report.json").read_text())
    found = {row["rule"]: row for row in rows(page, "data", 1)}
    assert found["empty side"]["removed"] == str(counts["removed"]["empty_side"]) == "1"
    assert found["ratio"] == {"rule": "ratio", "limit": "1.5", "removed": "1", "share": "20.00%"}
    assert "ratio: 1 of the removed pairs" in page.texts["data"] and "one two three" in page.texts["data"]


def test_several_runs_are_shown_side_by_side_with_their_differences(folder: Path) -> None:
    """There is a column for each parameter that differs, and for no other.

    Folders of the same name are shown with their paths; one that is given twice is shown once.
    """
    names = [str(folder / "one"), str(folder / "other" / "one")]
    write([*names, names[0]], folder, folder / "both.html")
    both = Page((folder / "both.html").read_text(encoding="utf-8"))
    metrics = json.loads((folder / "other/one/data/evaluation/metrics.json").read_text())
    one, two = rows(both, "runs")
    changed = ["train.seeds", "train.dropout", "evaluate.ensembles"]
    assert list(one)[:5] == ["run", *changed, "validation perplexity"]
    assert [row["run"] for row in (one, two)] == names
    assert [row["train.dropout"] for row in (one, two)] == ["0.0", "0.3"]
    assert two["BLEU"] == f"{metrics['mean']['bleu']:.2f} ± {metrics['std']['bleu']:.2f}"
    assert two["BLEU, ensemble"] == f"{metrics['ensemble']['bleu']:.2f}"
    assert two["validation perplexity"] == "6.00"  # the mean of 5.5 and 6.5
    assert "Where the runs differ most" in both.texts["examples"]
    costs = rows(both, "cost")  # each training took half an hour on two cores
    assert [row["seed"] for row in costs if row["run"] == names[1]] == ["1", "2"]
    spent = {(row["hardware"], row["time"], row["target tokens/s"]) for row in costs}
    assert spent == {("2 x Toy CPU", "1.00 CPU core-hours", "2,000")}
    assert rows(both, "training")[0]["parameters"] == "2,250,876"


def test_sentences_are_marked_and_stay_text(text: str) -> None:
    """Angle brackets must not become elements, and control characters must be visible."""
    page = Page(text)
    assert {one.strip() for one in page.marked} == {"weniger", "mehr", "vielen"}
    assert "<b>bold</b> & \N{REPLACEMENT CHARACTER}more" in page.texts["examples"]
    assert "<i>one</i>" in page.texts["data"]
    assert "b" not in {tag for tag, _ in page.elements} and "\x07" not in text
    assert "words – Wörtern: 0.12\n" in page.texts["attention"]


def test_an_unfinished_run_says_how_to_finish_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The user gets one line, but no traceback and no page."""
    (folder / "three").mkdir()
    shutil.copy(folder / "one" / "params.yaml", folder / "three")
    assert main([str(folder / "three"), "--out", str(folder / "three.html")]) == 1
    missing = folder / "three" / "data" / "snapshot" / "params.yaml"
    assert capsys.readouterr().err.startswith(f"{missing} does not exist: the run has not finished")
    assert not (folder / "three.html").exists()
