"""Each benchmark runs at toy size and compares what it names."""

import importlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from benchmarks import align, machine, overhead, round_trip, translate_large
from convs2s.base.files import write_lines
from tests.package.small_package import write_small_package

SOURCES = ["Das ist ein Haus .", "Hund", "", "Maus und Haus", "der Hund", "die Maus"]
TARGETS = ["Das ist ein Haus .", "Hund", "", "noch eins", "ein Hund", "die Maus aus"]


@pytest.fixture(autouse=True)
def _small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(machine.ROWS, "cpu", 256)


@pytest.mark.slow
def test_align(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each aligner runs in a process of its own; over both pairs, 1 of 3 and of 2 links is common."""
    links = [[(0, 0), (1, 1), (0, 0)], [(0, 1)]]
    true = [[(0, 0)], [(1, 0)]]
    assert align.alignment_error_rate(links, true) == pytest.approx(1 - 2 * 1 / 5)
    text = tmp_path / "text"
    write_lines(text, ["a b", "c"])
    align.main([f"--source={text}", f"--target={text}", "--rounds=1", "--iterations=1"])
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split("  ")[-1].strip() == "equal entries"
    assert rows[0].split()[0] == "builtin" and rows[0].split()[-1] == "1.0"


SMALL_MODEL = "--model {folder}/package"
SIDES = f"{SMALL_MODEL} --source {{folder}}/a.de {{folder}}/b.de --target {{folder}}/a.en {{folder}}/b.en"
OPTIONS = {  # and the number of rows of results
    "data_stages": ("--pairs 30 60 90 --last tokenize --folder {folder}", 3),
    "overhead": ("--no-dvc --rounds 1", 2),
    "sentences": (f"{SMALL_MODEL} --source {{folder}}/a.de --target {{folder}}/a.en --joined 1", 1),
    "serve": (f"{SMALL_MODEL} --source {{folder}}/a.de --clients 1 2 --requests 6", 4),
    "table3": (f"{SIDES} --settings threads workers --threads 1 --workers 2 --beams 1 2", 4),
    "text_to_text": (f"{SMALL_MODEL} --source {{folder}}/a.de --device cpu --beam-size 2 --rounds 1", 3),
    "train_step": ("--presets tatoeba-en-de --channels 16 --entries 40 --rounds 1 --updates 1 --threads 1 "
                   "--precisions float32 bfloat16", 4),
    "translate": (f"{SMALL_MODEL} --source {{folder}}/a.de --beam-sizes 2 --rounds 1 --lines-at-once 2", 3),
    "translate_large": ("--channels 8 --entries 60 --selected 20 --sentences 3 --tokens 4 --precisions "
                        "float32 --beam-sizes 2", 2),
    "vocabulary_selection": ("--preset tatoeba-en-de --types 700 --sentences 2 --words 3 --beam-sizes 1 "
                             "--runs 1", 2),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "vocabulary_selection" else pytest.mark.slow)
        for name in OPTIONS
    ],
)
def test_a_benchmark_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A benchmark that breaks is noticed only when it is needed. Here each runs to its end at toy size."""
    write_small_package(tmp_path, phase=1.0)
    for side, lines in (("de", SOURCES), ("en", TARGETS)):
        write_lines(tmp_path / f"a.{side}", lines[:2])
        write_lines(tmp_path / f"b.{side}", lines[2:])
    monkeypatch.setattr(overhead, "IMPORTS", {"nothing": "pass", "json": "import json"})
    monkeypatch.setattr(translate_large, "find_spec", lambda _: None)  # CTranslate2
    options, count = OPTIONS[name]
    command = [*shlex.split(options.format(folder=tmp_path)), "--json", str(tmp_path / "results.json")]
    programs = {name: importlib.import_module(f"benchmarks.{name}") for name in OPTIONS}
    programs[name].main(command)
    rows = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["results"]
    assert len(rows) >= count and all(measured(row) and min(measured(row)) > 0 for row in rows)
    assert capsys.readouterr().out.count("|") >= 8


def measured(row: Any) -> list[float]:
    """Return all speeds and seconds of a row, also of its inner tables."""
    inner = [value for value in row.values() if isinstance(value, dict)]
    own = [v for k, v in row.items() if isinstance(v, float) and k not in {"bleu", "same_hypotheses"}]
    return [*own, *(number for table in inner for number in measured(table))]


def test_round_trip() -> None:
    """Moses puts spaces around a slash, in one line of three; SentencePiece restores every line."""
    lines = ["Der Zug fährt 80 km/h, sagt er.", "Das ist ein Haus.", "Er sagt: ein Zug fährt."] * 20
    assert round_trip.survivors(lines, "de", "moses", 40)[:3] == [False, True, True]
    assert all(round_trip.survivors(lines, "de", "sentencepiece", 285))
