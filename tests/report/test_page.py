"""The report as a page: parsed, and compared with the files that it is made from."""

import json
import re
import shutil
from pathlib import Path
from unittest import mock

import matplotlib.image
import pytest

from pipelines.report.__main__ import main, write
from tests.report.made import GOOD, make_run
from tests.report.reading import Page

BAD = ["die Katze schläft .", "", "ein Satz"]
RESULTS = ["runs", "scores", "curves", "lengths", "examples", "attention", "data", "training"]
SECTIONS = [*RESULTS, "cost", "parameters"]
CONTROL = "\N{REPLACEMENT CHARACTER}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two finished runs: `one` with one seed, `two` with two seeds and more dropout."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "one", {}, {"1": GOOD})
    make_run(folder / "two", {"train.dropout": 0.3}, {"1": BAD, "2": GOOD, "ensemble": GOOD})
    return folder


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    """Return the page about the run `one`."""
    write([str(folder / "one")], folder, folder / "one.html")
    return (folder / "one.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def both(folder: Path) -> Page:
    """Return the page about both runs."""
    write([str(folder / "one"), str(folder / "two")], folder, folder / "both.html")
    return Page((folder / "both.html").read_text(encoding="utf-8"))


def rows(page: Page, section: str, table: int = 0) -> list[dict[str, str]]:
    """Return the rows of a table by their columns' titles."""
    titles, *cells = page.tables[section][table]
    return [dict(zip(titles, row, strict=True)) for row in cells]


def test_it_has_every_section_and_leads_to_each(text: str) -> None:
    """On a phone, nobody wants to scroll to find them."""
    page = Page(text)
    assert list(page.texts) == SECTIONS
    assert [a["href"] for tag, a in page.elements if tag == "a"] == [f"#{name}" for name in SECTIONS]
    assert all(page.texts[name].strip() for name in SECTIONS)


def test_it_loads_nothing(text: str) -> None:
    """The page must open without a network, and it forbids browsers to load anything."""
    page = Page(text)
    assert not {tag for tag, _ in page.elements} & {"script", "link", "img", "iframe", "object", "base"}
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            if name in {"src", "href", "xlink:href", "data", "action", "poster"}:
                assert value.startswith("#"), (tag, name, value)
            assert all(url.startswith("#") for url in re.findall(r"url\(([^)]*)\)", value)), (tag, value)
    assert not re.search(r"https?://|@import", text)


def test_ids_are_unique_and_references_have_targets(text: str) -> None:
    """matplotlib numbers the parts of each picture from 1, so those of several pictures would clash."""
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert set(re.findall(r"url\(#(\w+)\)", text)) <= set(ids)
    assert len(ids) == len(set(ids))
    assert not [name for name in ids if name.startswith(("figure_", "axes_", "patch_"))]


def test_scores_are_those_of_the_metrics(folder: Path, text: str) -> None:
    """Scores must agree to the digits shown; with one seed there is no row for the mean."""
    metrics = json.loads((folder / "one/data/evaluation/metrics.json").read_text())
    (row,) = rows(Page(text), "scores")
    assert row["model"] == "seed 1"
    assert row["BLEU"] == f"{metrics['seeds']['1']['bleu']:.2f}" != "0.00"
    assert row["chrF2"] == f"{metrics['mean']['chrf']:.2f}"
    (run,) = rows(Page(text), "runs")
    assert run["BLEU"] == row["BLEU"]
    assert run["validation perplexity"] == "5.50"
    assert "BLEU, ensemble" not in run


def test_several_runs_are_shown_side_by_side_with_their_differences(folder: Path, both: Page) -> None:
    """There is a column for each parameter that differs, and for no other."""
    metrics = json.loads((folder / "two/data/evaluation/metrics.json").read_text())
    one, two = rows(both, "runs")
    changed = ["train.seeds", "train.dropout", "evaluate.ensembles"]
    assert list(one)[:5] == ["run", *changed, "validation perplexity"]
    assert [row["run"] for row in (one, two)] == ["one", "two"]
    assert [row["train.dropout"] for row in (one, two)] == ["0.0", "0.3"]
    assert two["BLEU"] == f"{metrics['mean']['bleu']:.2f} ± {metrics['std']['bleu']:.2f}"
    assert two["BLEU, ensemble"] == f"{metrics['ensemble']['bleu']:.2f}"
    assert two["validation perplexity"] == "6.00"  # the mean of 5.5 and 6.5
    assert "Where the runs differ most" in both.texts["examples"]


def test_hardware_and_time_are_those_of_the_trainings(both: Page) -> None:
    """Each training took half an hour on two cores."""
    found = rows(both, "cost")
    assert [(row["run"], row["seed"]) for row in found] == [("one", "1"), ("two", "1"), ("two", "2")]
    assert {row["hardware"] for row in found} == {"2 x Toy CPU"}
    assert {row["time"] for row in found} == {"1.00 CPU core-hours"}
    assert {row["target tokens/s"] for row in found} == {"2,000"}
    assert rows(both, "training")[0]["parameters"] == "2,250,876"


def test_the_same_results_give_the_same_files_but_for_hardware_and_time(folder: Path, text: str) -> None:
    """A training that was killed and resumed has the same results, but not the same speed."""
    again = folder / "again" / "one"
    shutil.copytree(folder / "one", again)
    (cost,) = again.glob("data/checkpoints/*/costs/*")
    cost.write_text(cost.read_text().replace("1800.0", "3600.0"))
    write([str(again)], folder, folder / "again.html")
    other = (folder / "again.html").read_text(encoding="utf-8")
    section = re.compile('<section id="cost">.*?</section>', re.DOTALL)
    assert other != text
    assert section.sub("", other) == section.sub("", text)
    pictures = [(folder / f"{name}-curves.png").read_bytes() for name in ("one", "again")]
    assert pictures[0] == pictures[1]


def test_the_page_has_the_command_that_repeats_the_run(text: str) -> None:
    """Readers can copy the command; it includes the overrides of the preset."""
    assert "make preset NAME=tatoeba-en-de && make repro" in Page(text).texts["runs"]


def test_words_that_differ_are_marked_on_both_sides(text: str) -> None:
    """The translation marks what the reference lacks, and the reference what was missed."""
    marked = [one.strip() for one in Page(text).marked]
    assert set(marked) == {"weniger", "mehr", "vielen"}


def test_text_of_a_corpus_stays_text(text: str) -> None:
    """Angle brackets must not become elements, and control characters must be visible."""
    page = Page(text)
    assert f"<b>bold</b> & {CONTROL}more" in page.texts["examples"]
    assert "<i>one</i>" in page.texts["data"]
    assert not {tag for tag, _ in page.elements} & {"b"}
    assert "\x07" not in text


def test_each_rule_shows_its_count_and_pairs(folder: Path, text: str) -> None:
    """Counts and pairs must be those that the filter wrote."""
    page = Page(text)
    counts = json.loads((folder / "one/data/filtered/report.json").read_text())
    found = {row["rule"]: row for row in rows(page, "data", 1)}
    assert found["empty side"]["removed"] == str(counts["removed"]["empty_side"]) == "1"
    assert found["ratio"] == {"rule": "ratio", "limit": "1.5", "removed": "1", "share": "20.00%"}
    assert "ratio: 1 of the removed pairs" in page.texts["data"]
    assert "one two three" in page.texts["data"]


def test_attention_has_a_square_for_each_weight(text: str) -> None:
    """Readers who point at it see its two words."""
    assert "words – Wörtern: 0.12\n" in Page(text).texts["attention"]


def test_pictures_take_the_color_of_the_page(text: str) -> None:
    """Black axes would vanish in dark mode."""
    pictures = re.findall(r"<svg role.*?</svg>", text, flags=re.DOTALL)
    assert len(pictures) == 3
    assert "#010203" not in text
    assert "mathdefault" not in text  # such as 10^3, where a reader wants 1,000
    for picture in pictures:
        assert "fill: currentColor" in picture
        assert "#000000" not in picture
        assert "#ffffff" not in picture


def test_the_curves_are_a_picture_too(folder: Path, text: str) -> None:
    """A picture is useful for slides, and where there is no browser."""
    assert matplotlib.image.imread(folder / "one-curves.png").std() > 0.01


def test_an_unfinished_run_says_how_to_finish_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The user gets one line, but no traceback and no page."""
    (folder / "three").mkdir()
    shutil.copy(folder / "one" / "params.yaml", folder / "three")
    assert main([str(folder / "three"), "--out", str(folder / "three.html")]) == 1
    missing = folder / "three" / "data" / "snapshot" / "params.yaml"
    assert capsys.readouterr().err.startswith(f"{missing} does not exist: the run has not finished")
    assert not (folder / "three.html").exists()


def test_folders_of_the_same_name_are_told_apart(folder: Path, tmp_path: Path) -> None:
    """Their paths distinguish them; a run given twice is shown once."""
    shutil.copytree(folder / "two", tmp_path / "one")
    names = [str(folder / "one"), str(tmp_path / "one"), str(folder / "one")]
    with mock.patch("pipelines.report.__main__.render", return_value="") as render:
        write(names, folder, tmp_path / "page.html")
    assert [run.name for run in render.call_args.args[0]] == names[:2]
