"""The report as a page: parsed, and compared with the files that it is made from."""

import base64
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import lxml.html  # type: ignore[import-untyped]
import pytest

from convs2s.base.files import write_lines
from pipelines.report import inputs
from pipelines.report import page as page_module
from pipelines.report.__main__ import main
from pipelines.report.page import write
from tests.report.made import GOOD, make_run

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


@pytest.fixture(scope="module")
def page(text: str) -> Any:
    """Return the page as a browser reads it."""
    return lxml.html.document_fromstring(text)


def text_of(page: Any, section: str) -> str:
    return str(page.get_element_by_id(section).text_content())


def rows(page: Any, section: str, table: int = 0) -> list[dict[str, str]]:
    """Return the rows of a table by their columns' titles."""
    lines = page.get_element_by_id(section).xpath(".//table")[table].iter("tr")
    titles, *cells = ([cell.text_content() for cell in line] for line in lines)
    return [dict(zip(titles, row, strict=True)) for row in cells]


def test_the_same_files_give_the_same_page(folder: Path, text: str) -> None:
    """A report that is made again must not differ, or DVC would take it for another."""
    write([str(folder / "one")], folder, folder / "again.html")
    assert (folder / "again.html").read_text(encoding="utf-8") == text


def test_every_section_has_content_and_a_link(page: Any) -> None:
    """A reader goes from the list at the top to any of them."""
    sections = page.xpath("//section/@id")
    assert len(sections) == 9 and all(text_of(page, name).strip() for name in sections)
    assert page.xpath("//a/@href") == [f"#{name}" for name in sections]


def test_it_loads_nothing(text: str, page: Any) -> None:
    """The page must open without a network, and it forbids browsers to load anything."""
    tags = {element.tag for element in page.iter()}
    assert not tags & {"script", "link", "iframe", "object", "base"}
    assert page.xpath("//meta[@http-equiv]/@content") == [
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    ]
    assert not re.search(r"https?://|@import|url\(", text)


def test_its_pictures_are_part_of_it(folder: Path, page: Any) -> None:
    """The heat map is the file of the stage evaluate; the curves are drawn from the training's tables."""
    curves, heat_map = page.xpath("//img/@src")
    picture = folder / "one" / "data" / "evaluation" / "pictures" / "attention-1.png"
    assert base64.b64decode(heat_map.removeprefix("data:image/png;base64,")) == picture.read_bytes()
    assert curves.startswith("data:image/svg+xml;base64,")
    assert base64.b64decode(curves.partition(",")[2]).count(b"line2d") > 20


def test_scores_are_those_of_the_files(folder: Path, page: Any) -> None:
    """They must agree to the digits shown; with one seed there is no row for the mean."""
    metrics = json.loads((folder / "one/data/evaluation/metrics.json").read_text())
    (row,) = rows(page, "scores")
    assert row["model"] == "seed 1"
    assert row["BLEU"] == f"{metrics['seeds']['1']['bleu']:.2f}" != "0.00"
    assert row["chrF2"] == f"{metrics['mean']['chrf']:.2f}"
    (run,) = rows(page, "runs")
    date = run.pop("date")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", date)
    assert run == {
        "run": str(folder / "one"),
        "commit": "–",
        "validation perplexity": "5.50",
        "BLEU": row["BLEU"],
        "chrF2": row["chrF2"],
    }


def test_what_is_wrong_with_the_data_is_shown(folder: Path, page: Any) -> None:
    """Removed pairs have their rules, limits and examples; overlaps and warnings of the stage are there."""
    counts = json.loads((folder / "one/data/filtered/report.json").read_text())
    rules = {row["rule"]: row for row in rows(page, "data", 3)}
    assert rules["empty side"]["removed"] == str(counts["removed"]["empty_side"]) == "1"
    assert rules["ratio"] == {"rule": "ratio", "limit": "1.5", "removed": "1", "share": "20 %"}
    assert "Warning: language xf: expected an ISO 639 code" in text_of(page, "data")
    suspect = {"pairs that": "have markup, such as <b> or &nbsp;", "pairs": "1", "of": "5"}
    assert rows(page, "data", 1) == [{**suspect, "first line in data/raw/train": "4"}]
    assert rows(page, "data", 2) == [{"": "test", "pairs": "0", "sources": "0", "of": "3"}]
    assert "one two␣ three" in text_of(page, "data")


def test_parameters_are_those_of_the_run(page: Any) -> None:
    """Without them nobody could repeat it."""
    parameters = {row[""]: row["value"] for row in rows(page, "parameters")}
    assert (parameters["languages"], parameters["train.dropout"]) == ('["en", "de"]', "0.0")


@pytest.fixture(scope="module")
def comparison(folder: Path) -> Any:
    """Return the page about both runs, of which the first is given twice."""
    names = [str(folder / "one"), str(folder / "other" / "one")]
    write([*names, names[0]], folder, folder / "both.html")
    return lxml.html.document_fromstring((folder / "both.html").read_text(encoding="utf-8"))


def test_runs_are_compared_by_the_parameters_that_differ(folder: Path, comparison: Any) -> None:
    """There is a column for each of these and for no other; a folder that is given twice is shown once."""
    first, second = rows(comparison, "runs")
    changed = ["seeds", "train.dropout", "evaluate.ensembles"]
    assert list(first)[:7] == ["run", "date", "commit", *changed, "validation perplexity"]
    assert [row["run"] for row in (first, second)] == [str(folder / "one"), str(folder / "other" / "one")]
    assert [row["train.dropout"] for row in (first, second)] == ["0.0", "0.3"]


def test_a_run_of_several_seeds_has_means_and_its_ensemble(folder: Path, comparison: Any) -> None:
    """A mean without its deviation says little; the perplexity is the mean of 5.5 and 6.5."""
    metrics = json.loads((folder / "other/one/data/evaluation/metrics.json").read_text())
    _, row = rows(comparison, "runs")
    assert row["BLEU"] == f"{metrics['mean']['bleu']:.2f} ± {metrics['std']['bleu']:.2f}"
    assert row["BLEU, ensemble"] == f"{metrics['ensemble']['bleu']:.2f}"
    assert row["validation perplexity"] == "6.00"


def test_a_comparison_says_how_certain_its_differences_are(folder: Path, comparison: Any) -> None:
    """Two runs with equal translations do not differ; of the second, the ensemble is compared."""
    first, second = rows(comparison, "scores", -1)
    assert first["difference"] == first["p"] == second["p"] == "–"
    assert (second["translations"], second["difference"]) == ("ensemble", "+0.00")
    assert "bs:1000" in text_of(comparison, "scores")


def test_translations_that_are_much_too_short_get_a_remark(folder: Path, page: Any, tmp_path: Path) -> None:
    """BLEU alone does not tell a model that leaves out half of the text from one that translates badly."""
    assert "fewer words" not in text_of(page, "scores")
    make_run(tmp_path / "short", {}, {"1": [line[:6] for line in GOOD]})
    write([str(tmp_path / "short")], tmp_path, tmp_path / "short.html")
    short = lxml.html.document_fromstring((tmp_path / "short.html").read_text(encoding="utf-8"))
    assert re.search(r"length ratio 0\.\d\d: translations have \d\d% fewer words", text_of(short, "scores"))


def test_a_comparison_shows_where_translations_differ_most(comparison: Any) -> None:
    """Equal translations would say nothing about the difference of the runs."""
    assert "Where the runs differ most" in text_of(comparison, "examples")


def test_each_training_has_its_cost(folder: Path, comparison: Any) -> None:
    """Scores are to be read against what they cost, on which hardware."""
    trainings = rows(comparison, "training")
    of_other = [row["seed"] for row in trainings if row["run"] == str(folder / "other" / "one")]
    assert of_other == ["1", "2"]
    spent = {(row["hardware"], row["CPU core-hours"], row["target tokens/s"]) for row in trainings}
    assert spent == {("2 x Toy CPU", "1", "2,000")}
    assert trainings[0]["parameters"] == "2,250,876"


def test_sentences_are_marked_and_stay_text(text: str, page: Any) -> None:
    """Angle brackets must not become elements, and control characters must be visible."""
    assert {one.text_content().strip() for one in page.iter("mark")} == {"weniger", "mehr", "vielen"}
    assert "<b>bold</b> & \N{REPLACEMENT CHARACTER}more" in text_of(page, "examples")
    assert "<i>one</i>" in text_of(page, "data")
    assert not list(page.iter("b")) and "\x07" not in text


def test_an_unfinished_run_says_how_to_finish_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The user gets one line, but no traceback and no page."""
    (folder / "three").mkdir()
    shutil.copy(folder / "one" / "params.yaml", folder / "three")
    assert main([str(folder / "three"), "--out", str(folder / "three.html")]) == 1
    missing = folder / "three" / "dvc.lock"
    assert capsys.readouterr().err.startswith(f"{missing} does not exist: the run has not finished")
    assert not (folder / "three.html").exists()


def test_a_comparison_leaves_the_report_on_the_last_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has its file, so that `make report RUNS=...` does not replace what `make repro` has written.

    That on the last run comes with a summary, which names the experiment that the run is to become.
    """
    shutil.copytree(folder / "one", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pipelines.report.page.draw_curves", lambda _: "")  # which takes longest
    write_lines(tmp_path / "data" / "evaluation" / "examples.tsv", ["line"])
    assert main(["--experiment", "more"]) == main([".", str(folder / "one")]) == 0
    pages = [Path("data", name).resolve() for name in ("report.html", "comparison.html")]
    said = capsys.readouterr().out
    assert said.startswith("Scores of the test set\n") and "\nTo use a model: dvc exp apply more &&" in said
    assert said.endswith("".join(f"\nReport: {page.as_uri()}" for page in pages) + "\n")


def test_the_page_is_drawn_again_only_if_what_it_is_made_from_has_changed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That takes two seconds of each `make repro`. Code and results may change, and the page by hand."""
    shutil.copytree(folder / "one", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pipelines.report.page.render_page", lambda _: "a page\n")
    code = tmp_path / "code"
    shutil.copytree(Path(page_module.__file__).parent, code)
    monkeypatch.setattr(inputs, "CODE", [code])
    write_lines(tmp_path / "data" / "evaluation" / "examples.tsv", ["line"])
    out = tmp_path / "data" / "report.html"

    def is_drawn() -> bool:
        before = out.stat().st_ino if out.exists() else None
        assert main([]) == 0
        assert out.read_text(encoding="utf-8").startswith("a page\n<!-- made from ")
        return out.stat().st_ino != before

    assert is_drawn()
    assert not is_drawn()
    changed = [
        *(tmp_path / "data" / name for name in ("raw/test/source.txt", "costs/1.json")),
        *(tmp_path / "data" / name for name in ("replaced/1/plain.txt", "trained/1/metrics.json")),
        tmp_path / "data/trained/1/curves/train/loss.tsv", tmp_path / "dvc.lock",
        code / "page.html", code / "run.py", out,
    ]  # fmt: skip
    for path in changed:
        path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
        assert is_drawn(), path
        assert not is_drawn(), path
    os.utime(tmp_path / "data/evaluation/metrics.json", (0, 0))  # whose date the page shows
    assert is_drawn()
