"""The page of results: the paper's figures, ours next to them, and "not run" where there are none."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest

from pipelines.results.page import main, page
from pipelines.results.paper import presets, read_paper
from pipelines.results.records import read_records
from tests.results import made
from tests.results.made import COMMIT, put, run, sweep

ROOT = Path(__file__).parents[2]
RECORDS = "../experiments/records"
# The number of rows of each table of the paper, by heading.
ROWS = {
    "Table 1: WMT'16 English-Romanian": 3, "Table 1: WMT'14 English-German": 7,
    "Table 1: WMT'14 English-French": 9, "Table 2: ensembles, WMT'14 English-German": 3,
    "Table 2: ensembles, WMT'14 English-French": 5, "Table 3": 11, "Table 4": 4, "Table 5": 10,
    "Figure 2": 14, "Table 6: summarization, DUC": 4, "Table 6: summarization, Gigaword": 4,
    "Table 7": 9, "Table 8": 9, "Figure 3": 1,
}  # fmt: skip


def test_the_page_in_git_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, run python -m pipelines.results.page."""
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main() == 0
    text = (tmp_path / "docs" / "results.md").read_text(encoding="utf-8")
    assert text == (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert text.endswith("\n") and not text.endswith("\n\n")


def test_a_page_that_cannot_be_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user gets one line, which says what is missing."""
    monkeypatch.chdir(tmp_path)
    assert main() == 1
    assert "experiments/paper.yaml does not exist: it is in git" in capsys.readouterr().err


PAPER = functools.cache(functools.partial(read_paper, ROOT / "experiments"))


def page_of(results: Path) -> str:
    return page(PAPER(), read_records(results))


def part(text: str, heading: str) -> str:
    (found,) = [one for one in text.split("\n## ") if one.startswith(heading)]
    return found


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the rows of a section's first table, without its header."""
    lines = [line for line in part(text, heading).split("\n### ")[0].split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def row(text: str, heading: str, label: str) -> list[str]:
    return next(cells for cells in rows(text, heading) if cells[0] == label)


def test_every_table_of_the_paper_is_there(results: Path) -> None:
    """Each has as many rows as the paper has in the table and the text."""
    text = page_of(results)
    assert {heading: len(rows(text, heading)) for heading in ROWS} == ROWS


def test_the_papers_figures_are_as_printed(results: Path) -> None:
    """Trailing zeros count: 28.1 is not 28.10."""
    text = page_of(results)
    for heading, label, *figures in (
        ("Table 1: WMT'16", "ConvS2S (BPE 40K)", "30.02"),
        ("Table 1: WMT'16", "Sennrich et al. (2016b), GRU (BPE 90K)", "28.1"),
        ("Table 1: WMT'14 English-German", "ConvS2S, best run", "25.39"),
        ("Table 2: ensembles, WMT'14 English-French", "ConvS2S, 10 models", "41.62"),
        ("Table 3", "ConvS2S, GPU (K40), b = 5", "34.10", "587"),
        ("Table 3", "GNMT, GPU (K80)", "31.20", "3,028"),
        ("Table 4", "-source position", "6.69", "21.3"),
        ("Table 5", "1,3,5", "6.97", "21.10"),
        ("Table 6: summarization, Gigaword", "ConvS2S", "35.88", "17.48", "33.29"),
        ("Table 7", "7", "5", "20.81"),
        ("Table 8", "3", "3", "21.10"),
    ):
        assert row(text, heading, label)[1 : 1 + len(figures)] == figures, (heading, label)


def test_what_was_never_run_says_so_and_how_to(results: Path) -> None:
    """Each of our rows, or the table, has a command; systems by others have only the paper's figure."""
    text = page_of(results)
    for one in PAPER().values():
        if one.command:
            assert f"\nNot run: `{one.command}`\n" in part(text, one.title)
            continue
        for wanted, cells in zip(one.rows, rows(text, one.title), strict=True):
            assert cells[0] == wanted.row
            assert ("not run" in cells) == bool(cells[-1]) == (wanted.run is not None)
    ensemble = row(text, "Table 2: ensembles, WMT'14 English-German", "ConvS2S, 8 models")
    assert ensemble[-1] == (
        '`make preset NAME=wmt14-en-de-paper SET="train.seeds=[1,2,3,4,5,6,7,8]" && make repro`'
    )
    three = row(text, "Table 6: summarization, DUC", "ConvS2S")[-1]
    assert three == "`make preset NAME=duc2004 && make repro`", "the preset has three seeds"
    assert "`make preset NAME=ablation-en-de && make sweep TABLE=table5`" in part(text, "Table 5")
    assert row(text, "Runs on freely", "Tatoeba en-de")[2] == "not run"


def test_a_recorded_run_fills_its_row(results: Path) -> None:
    """The row has deviation and seeds, signature, hardware, hours and commit."""
    put(results, "ro", run("wmt16-en-ro-bpe", 29.0, 30.0))
    text = page_of(results)
    assert row(text, "Table 1: WMT'16", "ConvS2S (BPE 40K)")[1:-1] == [
        "30.02", "29.50 ± 0.75 (2 seeds)", "S1", "1 x NVIDIA H200", "3.25 GPU-hours",
        f"[`{COMMIT[:9]}`](../experiments/records/ro.json)",
    ]  # fmt: skip
    assert row(text, "Table 1: WMT'16", "ConvS2S (word 80K)")[2] == "not run"
    assert "- S1: `nrefs:1|tok:13a`" in part(text, "Signatures")
    _, date, commit, command, test_set, scores, *cost = row(text, "Records", f"[ro]({RECORDS}/ro.json)")
    again = '`make preset NAME=wmt16-en-ro-bpe SET="train.seeds=[1,2]" && make repro`'
    assert (date, commit, command) == ("2026-11-20", f"`{COMMIT}`", again)
    assert row(text, "Table 1: WMT'16", "ConvS2S (BPE 40K)")[-1] == again
    assert test_set == "`newstest2016: 1,999 lines, sha256 abc`"
    assert "<br>seed 2: validation perplexity 6.50, bleu 30.00" in scores
    assert cost == ["1 x NVIDIA H200", "3.25 GPU-hours", "2.13.0"]


def test_tokenized_scores_are_shown_next_to_the_papers_multi_bleu(results: Path) -> None:
    """Mean and best run come from the same record; an ensemble must have as many models as the paper's."""
    eight = [20.5 + i / 10 for i in range(8)]
    put(results, "de", run("wmt14-en-de-paper", *eight, ensemble=22.5))
    text = page_of(results)
    heading = "Table 1: WMT'14 English-German"
    assert row(text, heading, "ConvS2S (BPE 40K)")[2] == "20.35 ± 0.25 (8 seeds)"
    assert row(text, heading, "ConvS2S, best run")[2] == "20.70 (best of 8 seeds)"
    assert (
        row(text, "Table 2: ensembles, WMT'14 English-German", "ConvS2S, 8 models")[2] == "22.00 (8 models)"
    )
    put(results, "fr", run("wmt14-en-fr-paper", *eight, ensemble=22.5))
    heading = "Table 2: ensembles, WMT'14 English-French"
    assert row(page_of(results), heading, "ConvS2S, 8 models")[2] == "22.00 (8 models)"
    assert row(page_of(results), heading, "ConvS2S, 10 models")[2] == "not run"


def test_a_row_shows_what_differs_from_the_preset(results: Path) -> None:
    """A smaller model is not the paper's; two records of one preset get a line each."""
    changes = {"train.max_epochs": 3, "download.train": [{"kind": "files", "source": "x" * 70}]}
    put(results, "small", run("wmt16-en-ro-bpe", 12.0, changes=changes))
    put(results, "whole", run("wmt16-en-ro-bpe", 30.0))
    labels = [cells[0] for cells in rows(page_of(results), "Table 1: WMT'16")[2:]]
    assert labels == [
        "ConvS2S (BPE 40K) with `download.train: ...`, `train.max_epochs: 3`", "ConvS2S (BPE 40K)",
    ]  # fmt: skip


def test_unmeasured_hours_are_not_made_up(results: Path) -> None:
    """Old trainings did not measure hours; on a CPU the unit is core-hours."""
    put(results, "old", run("wmt16-en-ro-bpe", 30.0, cost=None))
    cost = {"hardware": ["2 x A CPU"], "hours": {"CPU core": 1.5, "GPU": 0.25}, "torch": ["2.13.0"]}
    put(results, "ro", run("wmt16-en-ro-word", 29.0, cost=cost))
    text = page_of(results)
    assert row(text, "Table 1: WMT'16", "ConvS2S (BPE 40K)")[4:6] == ["not measured", "not measured"]
    assert row(text, "Table 1: WMT'16", "ConvS2S (word 80K)")[4:6] == [
        "2 x A CPU", "1.50 CPU core-hours and 0.25 GPU-hours",
    ]  # fmt: skip


def test_runs_on_other_data_have_a_table_of_their_own(results: Path) -> None:
    """The table has mean and ensemble, with perplexity and all scores."""
    put(results, "multi30k-3", run("multi30k-en-de", 36.0, 37.0, ensemble=38.5))
    found = [c for c in rows(page_of(results), "Runs on freely") if c[0].startswith("Multi30k en-de")]
    assert [cells[:6] for cells in found] == [
        [
            "Multi30k en-de, test_2016_flickr", "", "6.50 (2 seeds)", "36.50 ± 0.75 (2 seeds)",
            "36.00 ± 0.25 (2 seeds)", "60.00 ± 60.00 (2 seeds)",
        ],
        [
            "Multi30k en-de, test_2016_flickr, ensemble", "", "", "38.50 (2 models)", "38.00 (2 models)",
            "60.00 (2 models)",
        ],
    ]  # fmt: skip
    assert found[0][9] == "S1, S2, S3"


def test_scores_before_unknown_words_are_replaced_are_shown(results: Path) -> None:
    """Readers of a word model's scores want to know what replacement gained (§4.3)."""
    record = run("multi30k-en-de", 36.0)
    record["metrics"]["without_replacement"] = run("multi30k-en-de", 30.0)["metrics"]
    put(results, "words", record)
    found = row(page_of(results), "Records", f"[words]({RECORDS}/words.json)")[5].split("<br>")
    assert len(found) == 2
    assert found[0].startswith("seed 1: validation perplexity 6.50, bleu 36.00, ")
    assert found[1].startswith("seed 1, unknown words kept: bleu 30.00, ")


def test_a_recorded_sweep_is_shown_next_to_the_papers_table(results: Path) -> None:
    """Its command is shown as well; only a sweep with the paper's preset removes "Not run" from the table."""
    several: dict[str, Any] = {"perplexity": 6.4, "perplexity_std": 0.05, "bleu_std": 0.2, "seeds": 3}
    ours = made.row("1,2,3,4,5", bleu=37.25, **several), made.row("1,2", perplexity=6.55, bleu=36.9)
    record = sweep("table5", "multi30k-en-de", *ours, changes={"train.max_epochs": 9})
    put(results, "table5-multi30k", record)
    text = part(page_of(results), "Table 5")
    assert "Not run: `make preset NAME=ablation-en-de && " in text
    shown = text.split("\n### ")[1]
    assert shown.startswith("Ours: `multi30k-en-de` with `train.max_epochs: 9`")
    assert "| 1,2,3,4,5 | 6.65 | 6.40 ± 0.05 | 21.63 | 37.25 ± 0.20 | 3 |" in shown
    assert "| 1,2 | 6.92 | 6.55 | 21.47 | 36.90 | 1 |" in shown
    assert "3.25 GPU-hours" in shown
    assert '`make preset NAME=multi30k-en-de SET="train.max_epochs=9" && make sweep TABLE=table5`' in shown
    assert "\n![table5-multi30k](pictures/table5-multi30k.png)\n" in shown
    put(results, "table5-paper", sweep("table5", "ablation-en-de", made.row("1,2", bleu=21.4)))
    assert "Not run" not in part(page_of(results), "Table 5")


def test_speed_is_shown_with_the_time_of_training(results: Path) -> None:
    """Speed is shown where it was measured; for a sweep, also by row."""
    cost = {"hardware": ["2 x A CPU"], "hours": {"CPU core": 0.28}, "torch": ["2.13.0"]}
    put(results, "ro", run("wmt16-en-ro-bpe", 29.0, cost=cost | {"target_tokens_per_second": 5399.6}))
    rows = made.row("1,2,3,4,5", target_tokens_per_second=5399.6), made.row("1,2", bleu=36.9)
    put(results, "table5-multi30k", sweep("table5", "multi30k-en-de", *rows))
    text = page_of(results)
    wanted = "0.28 CPU core-hours, 5,400 target tokens/s"
    assert row(text, "Table 1: WMT'16", "ConvS2S (BPE 40K)")[5] == wanted
    assert row(text, "Records", f"[ro]({RECORDS}/ro.json)")[7] == wanted
    ours = part(text, "Table 5").split("\n### ")[1]
    assert "| BLEU, ours | seeds | target tokens/s |" in ours
    assert "| 30.00 | 1 | 5,400 |" in ours
    assert "| 36.90 | 1 | - |" in ours
    assert "3,624 target words per second" in part(text, "Table 5")


def test_a_sweeps_table_has_the_papers_figures_as_printed(results: Path) -> None:
    """Trailing zeros count; in a table with columns, a row is found by both."""
    put(results, "table8-multi30k", sweep("table8", "multi30k-en-de", made.row("7", "3", bleu=20.9)))
    put(results, "table4-multi30k", sweep("table4", "multi30k-en-de", made.row("own idea", perplexity=6.55)))
    text = page_of(results)
    assert "| 7 | 3 | 21.40 | 20.90 | 1 |" in part(text, "Table 8")
    assert "| own idea | - | 6.55 | - | 30.00 | 1 |" in part(text, "Table 4"), "no longer in the table"


def test_summaries_have_rouge(results: Path) -> None:
    """ROUGE is in the paper's table, and next to BLEU where the paper has no row."""
    for name, preset in (("duc", "duc2004"), ("reuters", "reuters-headlines")):
        record = run(preset, 8.0)
        for found in (record["metrics"]["seeds"]["1"], record["metrics"]["mean"]):
            found |= {"rouge1": 30.25, "rouge2": 10.5, "rougeL": 26.75}
        record["signatures"] = record["signatures"] | {"rouge1": "ROUGE-1.5.5 -b 75"}
        put(results, name, record)
    text = page_of(results)
    wanted = ["30.25 (1 seed)", "10.50 (1 seed)", "26.75 (1 seed)"]
    assert row(text, "Table 6: summarization, DUC", "ConvS2S")[4:7] == wanted
    assert row(text, "Runs on freely", "Headlines of Reuters-21578")[6:9] == wanted
    assert "`ROUGE-1.5.5 -b 75`" in part(text, "Signatures")


def test_a_run_without_a_row_is_refused(results: Path) -> None:
    """Such a run would be recorded, but nobody would see it."""
    put(results, "mine", run("own-data", 12.0))
    with pytest.raises(ValueError, match=r"records/mine\.json: preset: found 'own-data', which paper\.yaml"):
        page_of(results)


def test_every_preset_has_a_row(results: Path) -> None:
    """The page covers the paper's experiments and all other presets except the user's own."""
    wanted = {path.stem for path in (ROOT / "experiments" / "presets").glob("*.yaml")} - {"own-data"}
    paper = PAPER()
    assert wanted <= presets(paper)
    assert presets(paper) - wanted <= {"ablation-en-de"}, "which the sweeps bring"
    text = page_of(results)
    for preset in wanted:
        assert re.search(rf"make preset NAME={preset} (SET=\S+ )?&& make", text)
