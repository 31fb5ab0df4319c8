"""Every benchmark runs at toy size, and its rows and figures are those that it promises."""

import importlib
import json
import math
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from benchmarks import (
    align,
    data_stages,
    harness,
    overhead,
    round_trip,
    serve,
    split,
    train_step,
    translate_large,
)
from benchmarks.__main__ import list_benchmarks
from benchmarks.corpus import TRAIN
from benchmarks.synthetic import only_batch, random_training
from convs2s.base.files import read_lines, write_lines
from convs2s.text.sentences import CERTAIN_ENDS, JOINS, LIKELY_ENDS, MASKS
from pipelines.preset import preset_params
from tests.package.small_package import write_small_package

SOURCES = ["Das ist ein Haus .", "Hund", "", "Maus und Haus", "der Hund", "die Maus"]
TARGETS = ["Das ist ein Haus .", "Hund", "", "noch eins", "ein Hund", "die Maus aus"]
WORDS_PER_LINE = {5: 13 / 5, 6: 13 / 6}
"""Of SOURCES, by the number of lines: without the blank one, and with it."""


@dataclass(frozen=True)
class Run:
    """A run at toy size.

    Attributes:
        options: of the command line; {folder} has a model folder `package`, and the texts above.
        names: the keys that say what a row is of.
        rows: their values, in order.
        figures: how many a row must have besides, all finite and positive.
        equal: keys whose value must be 1: shares of what must be equal.
        can_be_zero: keys whose figures do not count, as they need not be positive.
        lines: of the text from which it translates, if the mean number of their words is reported.
        is_slow: whether it takes more than a few seconds.
    """

    options: str
    names: Sequence[str]
    rows: Sequence[tuple[object, ...]]
    figures: int
    equal: Sequence[str] = ()
    can_be_zero: Sequence[str] = ()
    lines: int = 0
    is_slow: bool = True


MODEL = "--model {folder}/package"
TEXT = f"{MODEL} --source {{folder}}/text.de"
PAIRS = f"{TEXT} --target {{folder}}/text.en"
UPDATES = "--channels 16 --entries 40 --rounds 1 --updates 2 --threads 1 --precisions float32 bfloat16"
UPDATE_ROWS = [(variant,) for variant in ("plain float32", "fast float32", "plain bfloat16", "fast bfloat16")]
SETS = ("sentencex's tests", "Golden Rules")
RULES = [*MASKS, *CERTAIN_ENDS, *LIKELY_ENDS, *JOINS]
STAGES = ("tokenize", "filter")
PRECISIONS = (*harness.fast_dtypes(torch.device("cpu")), "int8")
RUNS = {
    "align": [
        Run("--source {folder}/text.de --target {folder}/text.de --rounds 1 --iterations 1",
            ["aligner"], [("builtin",)], 11, equal=["F1 with builtin", "equal entries"]),
    ],
    "data_stages": [
        Run("--pairs 30 60 90 --last filter --folder {folder}", ["stage", "pairs"],
            [(stage, pairs) for pairs in (30, 60, 90) for stage in STAGES], 5),
    ],
    "memory": [
        Run("--preset tatoeba-en-de --entries 3000 --tokens 200 --members 1 2",
            ["table", "members", "precision", "tokens", "loss"],
            [*(("A step of search", members, dtype, None, None)
               for members in (1, 2) for dtype in ("float32", "bfloat16")),
             *(("An update of tatoeba-en-de, 3,000 entries, bfloat16", None, None, 200, loss)
               for loss in ("at once", "in parts"))], 1, is_slow=False),
    ],
    "overhead": [
        Run("--no-dvc --rounds 1", ["command"], [("nothing",), ("json",)], 9, is_slow=False),
    ],
    "round_trip": [
        Run("de={folder}/prose.de --size 400 --sentences 250", ["text", "lines", "sentencepiece"],
            [("de prose.de", 250, 100.0)], 3, is_slow=False),
    ],
    "sentences": [
        Run(f"{PAIRS} --joined 1 2", ["joined", "lines"], [(1, 6), (2, 3)], 0,
            can_be_zero=["bleu", "split_right"], lines=6),
    ],
    "serve": [
        Run(f"{TEXT} --clients 1 2 --requests 6 --heavy 1 --workers 2",
            ["batches", "clients", "heavy clients"],
            [(batches, clients, heavy) for batches in ("together", "alone") for clients in (1, 2)
             for heavy in (0, 1)], 6, can_be_zero=["heavy answers"], lines=5),
    ],
    "split": [
        Run("--sentencex {folder}/sentencex --pysbd {folder}/pysbd", ["set", "rule"],
            [*((name, None) for name in SETS), *((name, rule) for rule in RULES for name in SETS)], 0,
            can_be_zero=["ours", "sentencex", "gained", "lost"], is_slow=False),
    ],
    "table3": [
        Run(f"{PAIRS} --settings threads workers --threads 1 --workers 2 --beam-sizes 1 2",
            ["beam_size", "system"],
            [(beam, f"ours, CPU, {system}") for beam in (1, 2) for system in ("1 thread", "2 workers")], 3,
            can_be_zero=["bleu"], lines=6, is_slow=False),
    ],
    "text_to_text": [
        Run(f"{TEXT} --beam-size 2 --rounds 1 --device cpu --precision float32", ["part", "path"],
            [("read: text to words", None), ("read: words to ids", None), ("books, search: host", None),
             ("books, search: device", None), ("write: ids to words", None), ("write: words to text", None),
             (None, "host, 1"), (None, "device, 1")], 1, equal=["same_translations"], lines=5, is_slow=False),
    ],
    "train_step": [
        Run(f"--presets multi30k-en-de {UPDATES}", ["variant"], UPDATE_ROWS, 9),
        Run(f"--presets tatoeba-en-de {UPDATES}", ["variant"], UPDATE_ROWS, 9),  # with Adam
    ],
    "translate": [
        Run(f"{TEXT} --beam-sizes 2 --rounds 1 --lines-at-once 2", ["beam_size", "path"],
            [(2, name) for name in ("plain float32", *(f"engine {name}" for name in PRECISIONS))], 7,
            can_be_zero=["same_hypotheses"], lines=5),
    ],
    "translate_large": [
        Run("--channels 8 --entries 60 --selected 20 --sentences 3 --tokens 4 --precisions float32 "
            "--beam-sizes 2 --rounds 1", ["beam_size", "system"],
            [(2, "ours float32"), (2, "ours float32, 20 selected")], 6, is_slow=False),
    ],
    "vocabulary_selection": [
        Run("--preset tatoeba-en-de --types 700 --sentences 2 --words 3 --beam-sizes 1 --rounds 1", ["work"],
            [("loss and gradients",), ("translation, beam 1",)], 3, is_slow=False),
    ],
}  # fmt: skip


def list_runs() -> Iterator[Any]:
    for name, runs in RUNS.items():
        for number, run in enumerate(runs, start=1):
            marks = [pytest.mark.slow] if run.is_slow else []
            yield pytest.param(name, run, id=f"{name}-{number}", marks=marks)


def test_each_benchmark_has_a_run() -> None:
    """A benchmark that nothing runs breaks unnoticed; test_gpu_report.py runs the parts of the GPU's."""
    assert RUNS.keys() | {"gpu_report"} == list_benchmarks().keys()


@pytest.mark.parametrize(("name", "run"), [*list_runs()])
def test_a_benchmark_at_toy_size(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has the rows that it promises, and in the table as many; figures are finite and positive."""
    write_small_package(tmp_path, phase=1.0)
    for side, lines in (("de", SOURCES), ("en", TARGETS)):
        write_lines(tmp_path / f"text.{side}", lines)
    write_checkouts(tmp_path)
    write_lines(tmp_path / "prose.de", (line.split("\t")[1] for line in islice(read_lines(TRAIN), 300)))
    monkeypatch.setitem(harness.ROWS, "cpu", 256)
    monkeypatch.setattr(align, "available", lambda: ["builtin"])
    monkeypatch.setattr(overhead, "IMPORTS", {"nothing": "pass", "json": "import json"})
    monkeypatch.setattr(serve, "HEAVY_CHARACTERS", 200)
    monkeypatch.setattr(translate_large, "find_spec", lambda _: None)  # CTranslate2
    file = tmp_path / "results.json"
    main = importlib.import_module(f"benchmarks.{name}").main
    main([*shlex.split(run.options.format(folder=tmp_path)), f"--json={file}"])
    content = json.loads(file.read_text(encoding="utf-8"))
    assert {"cpu", "auto", "threads", "python", "torch"} <= content["machine"].keys()
    if run.lines:
        assert content["words_per_line"] == pytest.approx(WORDS_PER_LINE[run.lines])
    results = content["results"]
    assert [tuple(row.get(key) for key in run.names) for row in results] == list(run.rows)
    for row in results:
        figures = [*list_figures({key: row[key] for key in row.keys() - {*run.names, *run.can_be_zero}})]
        assert len(figures) >= run.figures
        assert all(math.isfinite(figure) and figure > 0 for figure in figures), row
        assert all(row[key] == 1 for key in run.equal if key in row)
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(table) > len(results)


def write_checkouts(folder: Path) -> None:
    """Write tests of the form that sentencex and pySBD have: three cases each, of which we find two."""
    tests = folder / "sentencex" / "tests"
    tests.mkdir(parents=True)
    (tests / "en.txt").write_text(
        "# Comment\n# ===\n\nOne. Two.\n---\nOne.\nTwo.\n===\nNo. 5\n---\nNo.\n5\n===\n"
    )
    (tests / "lists.txt").write_text("* a\n* b\n---\n* a\n* b\n===\n")
    tests = folder / "pysbd" / "tests" / "lang"
    tests.mkdir(parents=True)
    (tests / "test_dutch.py").write_text(
        "import pytest\n"
        "GOLDEN = [\n"
        "    ('Een. Twee.', ['Een.', 'Twee.']),\n"
        "    pytest.param('1. A 2. B', ['1.', 'A 2.', 'B'], marks=1),\n"
        "    ('1. A 2. B', ['1. A ', '2. B']),\n"
        "]\n"
        "DA_PDF_CASES = [('a', ['a'])]\n"
    )


def test_rules_are_compared_with_sentencex_alone(tmp_path: Path) -> None:
    """Two of three cases are right of each set; what makes the list right is the rule of items."""
    write_checkouts(tmp_path)
    file = tmp_path / "results.json"
    split.main([f"--sentencex={tmp_path / 'sentencex'}", f"--pysbd={tmp_path / 'pysbd'}", f"--json={file}"])
    results = json.loads(file.read_text(encoding="utf-8"))["results"]
    counts = [(row["cases"], row["languages"], row["ours"]) for row in results[:2]]
    assert counts == [(3, 1, 2), (3, 1, 2)]
    gained = {(row["rule"], row["set"]): row["gained"] for row in results[2:]}
    assert gained["items", "Golden Rules"] == 1
    assert gained["smileys", "Golden Rules"] == 0


def list_figures(value: Any) -> Iterator[float]:
    """Yield all numbers in a result, also of its inner tables."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from list_figures(inner)
    elif isinstance(value, int | float):
        yield value


def test_lines_are_drawn_from_the_whole_text(tmp_path: Path) -> None:
    """The first lines of a text that is sorted by length are shorter than its others."""
    lines = [" ".join(["word"] * length) for length in range(1, 101) for _ in range(10)]
    write_lines(tmp_path / "text", ["", *lines])
    drawn = harness.draw_lines(tmp_path / "text", 400)
    assert len(drawn) == 400
    assert harness.words_per_line(drawn) == pytest.approx(50.5, rel=0.1)
    assert drawn == harness.draw_lines(tmp_path / "text", 400)
    assert sorted(harness.draw_lines(tmp_path / "text", 2000)) == sorted(lines)


def test_ways_take_turns() -> None:
    """The other load of a machine then falls on all of them; the first call of each is a warm-up."""
    calls = []

    def call(name: str) -> int:
        calls.append(name)
        return len(calls)

    measured = harness.in_turns({name: partial(call, name) for name in "AB"}, rounds=2)
    assert calls == ["A", "B", "A", "B", "A", "B"]
    assert measured == {"A": [3, 5], "B": [4, 6]}


def test_rows_are_written_when_they_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is measured before an error or Ctrl-C is not lost."""

    def measure(_: Any, report: harness.Report) -> None:
        report.note(lines=3)
        report.table(("name", "speed"), "Speeds")
        report.add(name="first", speed=1234.5)
        report.add("2nd", "slow", name="second", speed=0.5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        harness.program("", lambda _: None, measure)([f"--json={tmp_path / 'json'}"])
    content = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert content["lines"] == 3
    assert content["results"] == [
        {"table": "Speeds", "name": "first", "speed": 1234.5},
        {"table": "Speeds", "name": "second", "speed": 0.5},
    ]
    printed = capsys.readouterr().out
    assert printed.endswith(
        "lines 3\n\nSpeeds\n\n| name | speed |\n|---|---:|\n| first | 1,234 |\n| 2nd | slow |\n"
    )


def test_heavy_clients_send_while_short_lines_are_measured() -> None:
    """Each has had an answer before the first line is sent, and sends on until the last is answered."""
    events = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            events.append(f"get {size}")
            time.sleep(0.02)
            events.append(f"answer {size}")
            self.send_response(HTTPStatus.OK)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"127.0.0.1:{server.server_port}"
        per_second, *percentiles, answers, _ = serve.measure_load(address, ["short"] * 12, 2, "heavy" * 9, 3)
        server.shutdown()
    assert events[: events.index("get 5")].count("answer 45") >= 3
    assert events.count("answer 5") == 12
    assert 3 < answers <= events.count("answer 45") - 3
    assert 20 <= percentiles[0] <= percentiles[-1] and per_second <= 2 / 0.02


def test_the_cost_of_a_process_is_its_own() -> None:
    """A process that is started by a large one must not be taken for as large."""
    own = torch.ones(100 << 20)  # 400 MiB
    cost = harness.run_process(
        [sys.executable, "-c", "import sys; x = sys.stdin.read() * 10_000"], "a" * 5000
    )
    assert own[-1] == 1 and 50 < cost.mib < 150
    assert 0 < cost.processor_seconds < cost.seconds + 1
    with pytest.raises(subprocess.CalledProcessError, match="exit status 3"):
        harness.run_process([sys.executable, "-c", "raise SystemExit(3)"])


@pytest.mark.parametrize("preset", ["tatoeba-en-de", "multi30k-en-de"])
def test_updates_have_the_rate_of_the_preset(preset: str) -> None:
    """Another optimizer's rate diverges: Adam moves each weight by about its rate in an update."""
    model = train_step.narrow(preset_params(preset).model, 8)
    with random_training(preset, model, (40, 40), 60, torch.device("cpu"), dropout=0.0) as training:
        variant = train_step.Variant(training, training.losses(0.0), only_batch(training))
        before = torch.cat([p.detach().flatten().clone() for p in training.model.parameters()])
        rates = []
        for _ in range(3):
            rates.append(training.learning_rate())
            variant.update()
        after = torch.cat([p.detach().flatten() for p in training.model.parameters()])
    if preset == "tatoeba-en-de":
        assert rates == pytest.approx([0.01 * update / 300 for update in (1, 2, 3)])
        assert 0 < (after - before).abs().max() <= 1.5 * sum(rates)
    else:
        assert rates == [0.25] * 3
        assert 0 < (after - before).abs().max() <= 1.0


def test_mapped_files_are_no_memory_that_a_stage_needs(tmp_path: Path) -> None:
    """Of the aligner's tables, the system keeps in memory what there is room for: it can do with far less."""
    path = tmp_path / "table"
    program = (
        "import numpy, sys; table = numpy.memmap(sys.argv[1], 'uint8', 'w+', shape=(96 << 20,)); "
        "table[:] = 1; print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        memory = data_stages.memory_usage(psutil.Process(process.pid))
        process.communicate(b"\n")
    assert memory.mapped > 96 > memory.own > 1


def test_costs_of_the_papers_corpus_are_extrapolated() -> None:
    """What is constant stays so; all else grows from its base, in line with the pairs or a power of them."""
    sizes, size = np.array([100, 200, 400]), data_stages.PAPER_PAIRS
    for power in (1.0, 0.8):
        values = 50.0 + sizes**power
        constant = data_stages.extrapolate(sizes, np.full(3, 150.0), power)
        assert constant == pytest.approx((150.0, 0.0), abs=1e-6)
        assert data_stages.extrapolate(sizes, values, power) == pytest.approx(
            (50.0 + size**power, 0.0), abs=1e-3
        )
        values[-1] /= 2
        assert data_stages.extrapolate(sizes, values, power)[1] == pytest.approx(1.0)


def test_alignment_error_rate() -> None:
    """Over both pairs, 1 of 3 and of 2 links is common."""
    links = [[(0, 0), (1, 1), (0, 0)], [(0, 1)]]
    assert align.alignment_error_rate(links, [[(0, 0)], [(1, 0)]]) == pytest.approx(1 - 2 * 1 / 5)


def test_round_trip() -> None:
    """Moses puts spaces around a slash, in one line of three; SentencePiece restores every line."""
    lines = ["Der Zug fährt 80 km/h, sagt er.", "Das ist ein Haus.", "Er sagt: ein Zug fährt."] * 20
    assert round_trip.survivors(lines, "de", "moses", 40)[:3] == [False, True, True]
    assert all(round_trip.survivors(lines, "de", "sentencepiece", 285))
