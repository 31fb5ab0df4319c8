"""Each benchmark runs at toy size and compares what it names; some numbers are worked out by hand."""

import importlib
import json
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import align, gpu_report, machine, overhead, round_trip, table3, translate_large
from benchmarks.data_stages import PAPER_PAIRS, Cost, extrapolate
from convs2s.base.files import write_lines
from tests.package.small_package import write_small_package

CPU = torch.device("cpu")
SOURCES = ["Das ist ein Haus .", "Hund", "", "Maus und Haus", "der Hund", "die Maus"]
TARGETS = ["Das ist ein Haus .", "Hund", "", "noch eins", "ein Hund", "die Maus aus"]


@pytest.fixture(autouse=True)
def _small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(machine.ROWS, "cpu", 256)


def run(name: str, folder: Path, options: str) -> Any:
    """Run a benchmark with these options; return what it writes as JSON."""
    out = folder / "results.json"
    command = shlex.split(options.format(folder=folder))
    importlib.import_module(f"benchmarks.{name}").main([*command, "--json", str(out)])
    return json.loads(out.read_text(encoding="utf-8"))


def test_variants_take_turns_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 units in 3 seconds of wall time; 6 seconds of processor time on 2 threads are 3 each."""
    clock, processor = iter([10.0, 13.0] * 4), iter([1.0, 7.0] * 4)
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(machine.time, "process_time", lambda: next(processor))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    order: list[str] = []

    def work(name: str) -> float:
        order.append(name)
        return 12.0

    speeds = machine.in_turns({name: partial(work, name) for name in "ab"}, 2, CPU)
    assert order == ["a", "b"] * 3
    assert speeds == {"a": [machine.Speed(4.0, 4.0)] * 2, "b": [machine.Speed(4.0, 4.0)] * 2}


def test_align(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each aligner runs in a process of its own; over both pairs, 1 of 3 and of 2 links is common."""
    links, true = [[(0, 0), (1, 1), (0, 0)], [(0, 1)]], [[(0, 0)], [(1, 0)]]
    assert align.alignment_error_rate(links, true) == pytest.approx(1 - 2 * 1 / 5)
    text = tmp_path / "text"
    write_lines(text, ["a b", "c"])
    align.main([f"--source={text}", f"--target={text}", "--rounds=1", "--iterations=1"])
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split("  ")[-1].strip() == "equal entries"
    assert rows[0].split()[0] == "builtin" and rows[0].split()[-1] == "1.0"


@pytest.mark.parametrize(("exponent", "constant"), [(1.0, 0.0), (0.7, 0.0), (1.2, 0.0), (1.0, 5.0)])
def test_extrapolation_is_exact_for_a_power_law_and_for_a_line(exponent: float, constant: float) -> None:
    """Of a concave curve, the line is the larger, so what is missing is rather overestimated."""
    sizes = np.array([100_000, 200_000, 400_000])
    _, value, error = extrapolate(sizes, constant + sizes**exponent / 1e5)
    expected = constant + PAPER_PAIRS**exponent / 1e5
    exact = (value, error) == pytest.approx((expected, 0.0), abs=1e-6)
    assert exact if exponent >= 1.0 else value > expected and error > 0.0


def test_data_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three sizes, two of them measured earlier, give an extrapolation."""
    earlier = [{"stage": "tokenize", "pairs": pairs, **vars(Cost(1, 1, 1, 1))} for pairs in (30, 60)]
    (tmp_path / "results.json").write_text(json.dumps({"results": earlier}))
    rows = run("data_stages", tmp_path, "--pairs 90 --last tokenize --folder {folder}")["results"]
    assert rows[:2] == earlier
    assert min(rows[2][quantity] for quantity in ("seconds", "cpu_seconds", "memory", "disk")) > 0
    assert "| tokenize | seconds |" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.slow
def test_gpu_report(tmp_path: Path) -> None:
    """One that fails or takes too long does not stop the others."""
    gpu_report.main(["--toy", "--out", str(tmp_path)])
    assert (tmp_path / "report.md").read_text().count("exit status 0") == 3
    assert gpu_report.run(["no_such_module"], 60).startswith("exit status 1, ")
    assert gpu_report.run(["http.server", "0"], 0).startswith("killed: its time was up")


def test_overhead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By wall and processor time, Python alone is faster than a tenth of a second of work."""
    work = "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass"
    monkeypatch.setattr(overhead, "IMPORTS", {"nothing": "pass", "work": work})
    nothing, worked = run("overhead", tmp_path, "--no-dvc --rounds 1")["results"]
    for key in ("seconds", "processor_seconds"):
        assert 0 < nothing[key]["median"] < worked[key]["median"]
        assert worked[key]["median"] >= 0.1


def test_round_trip() -> None:
    """Moses puts spaces around a slash, in one line of three; SentencePiece restores every line."""
    lines = ["Der Zug fährt 80 km/h, sagt er.", "Das ist ein Haus.", "Er sagt: ein Zug fährt."] * 20
    assert round_trip.survivors(lines, "de", "moses", 40)[:3] == [False, True, True]
    assert all(round_trip.survivors(lines, "de", "sentencepiece", 285))


@pytest.mark.slow
def test_serve(tmp_path: Path) -> None:
    """It measures with and without batching, for each number of clients."""
    model = write_small_package(tmp_path)
    write_lines(tmp_path / "lines", ["ein Haus", "", "ein Hund"])
    options = f"--model {model} --source {{folder}}/lines --clients 1 2 --requests 6"
    rows = [list(row.values()) for row in run("serve", tmp_path, options)["results"]]
    assert [row[:2] for row in rows] == [["together", 1], ["together", 2], ["alone", 1], ["alone", 2]]
    assert all(speed > 0 and 0 < p50 <= p95 <= p99 for *_, speed, p50, p95, p99 in rows)


@pytest.mark.parametrize("place", ["threads", "workers"])
def test_table3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Batches have one length only; files of a side are concatenated; all is scored in the files' order."""
    assert table3.equal_lengths([3, 5, 3, 3, 1], size=2) == [[1], [0, 2], [3], [4]]
    for side, lines in (("en", SOURCES), ("de", TARGETS)):
        write_lines(tmp_path / f"a.{side}", lines[:2])
        write_lines(tmp_path / f"b.{side}", lines[2:])
    model = write_small_package(tmp_path, phase=1.0)
    sides = "--source {folder}/a.en {folder}/b.en --target {folder}/a.de {folder}/b.de"
    options = f"--model {model} {sides} --settings {place} --threads 1 --workers 2 --beams 1 2"
    scored: list[tuple[list[str], list[str]]] = []
    bleu = table3.tokenized_bleu
    monkeypatch.setattr(
        table3,
        "tokenized_bleu",
        lambda *texts: scored.append(texts) or bleu(*texts),  # type: ignore[func-returns-value]
    )
    content = run("table3", tmp_path, options)
    lines = capsys.readouterr().out.split("\n")
    assert "| ConvS2S, GPU (M40) | 1 | 33.45 | 221 | 27.2 |  |" in lines
    assert sum(line.startswith("| ours, CPU") for line in lines) == 2
    words = table3.translator(table3.Job(model, "cpu", beam_size=1, batch_sentences=4)).words
    best = [words.translate([line.split()], keep_attention=False)[0][0].words for line in SOURCES]
    assert len({len(words) for words in best}) > 2
    assert scored[0] == ([" ".join(line) for line in best], TARGETS)
    assert "6 lines, sha256" in content["test_set"]


def test_train_step(tmp_path: Path) -> None:
    """Plain and fast layers in two precisions, each with its share of the peak."""
    options = "--presets tatoeba-en-de --channels 16 --entries 40 --rounds 1 --updates 1 --threads 1"
    content = run("train_step", tmp_path, f"{options} --precisions float32 bfloat16")
    names = [row["variant"] for row in content["results"]]
    assert names == ["plain float32", "fast float32", "plain bfloat16", "fast bfloat16"]
    for row in content["results"]:
        speed = row["target_tokens"]["per_processor_second"]
        peak = content["product_flop_per_second"][row["variant"].split()[1]]
        assert row["share_of_products"] == pytest.approx(speed["median"] * row["flop_per_token"] / peak)


@pytest.mark.slow
def test_translate(tmp_path: Path) -> None:
    """The engine gives the plain model's hypotheses in float32."""
    model = write_small_package(tmp_path)
    write_lines(tmp_path / "lines", ["ein Haus.", "noch ein Hund, und eins."])
    options = f"--model {model} --source {{folder}}/lines --beam-sizes 2 --rounds 1"
    paths = {row["path"]: row for row in run("translate", tmp_path, options)["results"]}
    assert {"plain float32", "engine float32", "engine int8"} <= set(paths)
    assert paths["engine float32"]["same_hypotheses"] == 1
    assert all(row["share_of_products"] > 0 for row in paths.values())


def test_translate_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All systems write as many tokens as the source has, EOS included: 3 sentences of 5."""
    tokens = list[float]()

    def in_turns(ways: dict[str, machine.Work], *_: object) -> dict[str, list[machine.Speed]]:
        tokens.extend(work() for work in ways.values())
        return {name: [machine.Speed(1.0, 1.0)] for name in ways}

    monkeypatch.setattr(translate_large, "find_spec", lambda _: None)  # CTranslate2
    monkeypatch.setattr(translate_large, "in_turns", in_turns)
    options = "--channels 8 --entries 60 --selected 20 --sentences 3 --tokens 4 --precisions float32"
    rows = run("translate_large", tmp_path, f"{options} --beam-sizes 2")["results"]
    assert [row["system"] for row in rows] == ["ours float32", "ours float32, 20 selected"]
    assert tokens == [15.0, 15.0]


def test_vocabulary_selection(tmp_path: Path) -> None:
    """Training and translation, each with the whole vocabulary and with a selection."""
    options = "--preset tatoeba-en-de --types 700 --sentences 2 --words 3 --beam-sizes 1 --runs 1"
    rows = run("vocabulary_selection", tmp_path, options)["results"]
    assert [row["work"] for row in rows] == ["loss and gradients", "translation, beam 1"]
    assert all(row["ratio"] > 0 for row in rows)
