"""The speed protocol of Table 3: it must time the translation of the whole test set."""

import json
from pathlib import Path

import pytest

from benchmarks.table3 import Job, Setting, equal_lengths, main, time_all, translator
from convs2s.score.corpus_scores import tokenized_bleu
from convs2s.score.identity import identify
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.split import write_split
from tests.package.small_package import write_small_package

SOURCES = ["Das ist ein Haus .", "Hund", "", "Maus und Haus", "der Hund", "die Maus"]
TARGETS = ["Das ist ein Haus .", "Hund", "", "noch eins", "ein Hund", "die Maus aus"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_package(tmp_path_factory.mktemp("model"))


def write(folder: Path, name: str, lines: list[str]) -> str:
    path = folder / name
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_a_batch_has_sentences_of_one_length_only() -> None:
    """There is no padding (§5.3); the longest sentences come first, and no batch exceeds the size."""
    assert equal_lengths([3, 5, 3, 3, 1], size=2) == [[1], [0, 2], [3], [4]]


@pytest.mark.parametrize("workers", [0, 2])
def test_every_setting_gives_what_the_translator_gives(model: Path, workers: int) -> None:
    """Every setting must translate all sentences, in order."""
    setting = Setting("ours", "cpu", 1, workers)
    job = Job(model, "cpu", beam_size=2, batch_sentences=4)
    batches = [[line.split()] for line in SOURCES]
    expected = [translator(job).words.translate(batch, keep_attention=False)[0][0] for batch in batches]
    _, done = time_all(job, setting, batches)
    assert [[source] for [(source, _)] in done] == batches
    assert [best.tokens for [(_, best)] in done] == [best.tokens for best in expected]


def test_the_table_has_the_paper_and_a_row_for_each_beam(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of a side are concatenated; test set and signature are as the stage evaluate writes them."""
    sources = [write(tmp_path, "a.en", SOURCES[:2]), write(tmp_path, "b.en", SOURCES[2:])]
    targets = [write(tmp_path, "a.de", TARGETS[:2]), write(tmp_path, "b.de", TARGETS[2:])]
    sides = ["--source", *sources, "--target", *targets, "--json", str(tmp_path / "speed.json")]
    main(["--model", str(model), *sides, "--settings", "threads", "--threads", "1", "--beams", "1", "2"])
    lines = capsys.readouterr().out.split("\n")
    assert "| ConvS2S, GPU (M40) | 1 | 33.45 | 221 | 27.2 |  |" in lines
    rows = [line for line in lines if line.startswith("| ours, CPU, 1 thread | ")]
    assert [row.split(" | ")[1] for row in rows] == ["1", "2"]
    content = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    words = translator(Job(model, "cpu", beam_size=1, batch_sentences=4)).words
    done = [words.translate([line.split()], keep_attention=False)[0][0].words for line in SOURCES]
    bleu = tokenized_bleu([" ".join(line) for line in done], TARGETS).value  # batches are sorted by length
    assert content["results"][0]["bleu"] == pytest.approx(bleu, abs=0.01)
    for row in content["results"]:
        assert 0 <= row["bleu"] <= 100 and row["seconds"] > 0 and row["tokens"] >= row["sentences"] / 2
    paths = [[tmp_path / "a.en", tmp_path / "a.de"], [tmp_path / "b.en", tmp_path / "b.de"]]
    write_split([file_part(pair, None) for pair in paths], tmp_path / "test")
    test_set, signature = str(identify(tmp_path / "test")), tokenized_bleu(["a"], ["a"]).signature
    assert (content["test_set"], content["signatures"]) == (test_set, {"bleu": signature})
    assert lines[-2] == f"Ours: {test_set}; BLEU {signature}."
