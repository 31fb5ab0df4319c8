"""The speed protocol of Table 3: it must time the translation of the whole test set."""

import hashlib
import json
import re
from pathlib import Path

import pytest
import torch

from benchmarks import machine
from benchmarks.table3 import PAPER, Job, Setting, equal_lengths, main, quality, timed, translator
from convs2s.decode.translations import Hypothesis
from convs2s.score.corpus_scores import tokenized_bleu
from convs2s.score.identity import identify
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.split import write_split
from tests.package.small_package import write_small_package

SOURCES = ["Das ist ein Haus .", "Hund", "", "Maus und Haus", "der Hund", "die Maus"]
TARGETS = ["Das ist ein Haus .", "Hund", "", "noch eins", "ein Hund", "die Maus aus"]


@pytest.fixture(autouse=True)
def _small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(machine.ROWS, "cpu", 256)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_package(tmp_path_factory.mktemp("model"))


def written(folder: Path, name: str, lines: list[str]) -> str:
    path = folder / name
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_batch_has_sentences_of_one_length_only() -> None:
    """There is no padding (§5.3); the longest sentences come first, and no batch exceeds the size."""
    assert equal_lengths([3, 5, 3, 3, 1], size=2) == [[1], [0, 2], [3], [4]]


def test_the_papers_speedups_follow_from_its_figures() -> None:
    """§5.3: 9.3, 13.7 and 21.3 times as fast on GPUs, 9.3 times on CPU, with a beam of 1."""
    seconds = {(name, beam): seconds for name, beam, _, seconds in PAPER}
    gnmt = seconds["GNMT, GPU (K80)", None]
    names = ("GPU (K40)", "GPU (M40)", "GPU (GTX-1080ti)")
    ratios = [round(gnmt / seconds[f"ConvS2S, {name}", 1], 1) for name in names]
    assert ratios == [9.3, 13.7, 21.3]
    cpu = seconds["GNMT, CPU, 88 cores", None] / seconds["ConvS2S, CPU, 48 cores", 1]
    assert round(cpu, 1) == 9.3
    assert len(seconds) == len(PAPER) == 11


@pytest.mark.parametrize(
    "setting",
    [
        Setting("threads", "cpu", threads=1, workers=0),
        Setting("workers", "cpu", threads=1, workers=2),
    ],
    ids=lambda setting: setting.name,
)
def test_every_setting_gives_what_the_translator_gives(model: Path, setting: Setting) -> None:
    """Every setting must translate all sentences, in order."""
    job = Job(model, "cpu", beam_size=2, batch_sentences=4)
    batches = [[line.split()] for line in SOURCES]
    wanted = [translator(job).words.translate(batch, keep_attention=False)[0][0] for batch in batches]
    seconds, done = timed(job, setting, batches)
    assert seconds > 0
    assert [[source] for [(source, _)] in done] == batches
    assert [best.tokens for [(_, best)] in done] == [best.tokens for best in wanted]


def test_bleu_is_computed_in_the_order_of_the_file(model: Path) -> None:
    """Batches are sorted by length, but each translation must be scored against its own reference."""
    job = Job(model, "cpu", beam_size=1, batch_sentences=4)
    indices = equal_lengths([len(line) for line in SOURCES], 4)
    done = [
        [(["Haus"], Hypothesis([], TARGETS[i].split(), 0.0, 0.0, [], [])) for i in batch] for batch in indices
    ]
    assert quality(job, indices, done, TARGETS).value == pytest.approx(100)


def test_the_table_has_the_paper_and_a_row_for_each_beam(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of a side are concatenated; BLEU, seconds and both speeds must be consistent."""
    sources = [written(tmp_path, "a.en", SOURCES[:2]), written(tmp_path, "b.en", SOURCES[2:])]
    targets = [written(tmp_path, "a.de", TARGETS[:2]), written(tmp_path, "b.de", TARGETS[2:])]
    sides = ["--source", *sources, "--target", *targets]
    main(["--model", str(model), *sides, "--settings", "threads", "--threads", "1", "--beams", "1", "2"])
    lines = capsys.readouterr().out.split("\n")
    rows = [cells(line) for line in lines if line.startswith("| ours")]
    assert [row[:2] for row in rows] == [["ours, CPU, 1 thread", "1"], ["ours, CPU, 1 thread", "2"]]
    assert cells(lines[6]) == ["ConvS2S, GPU (M40)", "1", "33.45", "221", "27.2", "", ""]
    for _, _, bleu, _, sentences, tokens, share in rows:
        assert 0 < float(share.removesuffix("%")) < 100
        assert 0 <= float(bleu) <= 100
        assert float(tokens.replace(",", "")) >= float(sentences.replace(",", "")) / 2
    digest = hashlib.sha256("".join(map("{}\t{}\n".format, SOURCES, TARGETS)).encode()).hexdigest()
    assert lines[-3] == "The paper's: newstest2012 and newstest2013, 6,003 sentences."
    assert re.fullmatch(
        rf"Ours: a\.en and a\.de, b\.en and b\.de: 6 lines, sha256 {digest}; BLEU nrefs:1\|case:mixed\S+\.",
        lines[-2],
    )


def test_json_has_what_is_printed(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has the same rows, and test set and signature as the stage evaluate writes them."""
    source, target = written(tmp_path, "a: 1.en", SOURCES), written(tmp_path, "a: 1.de", TARGETS)
    sides = ["--source", source, "--target", target, "--json", str(tmp_path / "speed.json")]
    main(["--model", str(model), *sides, "--settings", "threads", "--beams", "1"])
    content = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    (printed,) = [cells(line) for line in capsys.readouterr().out.split("\n") if line.startswith("| ours")]
    assert content["machine"]["torch"] == torch.__version__
    (row,) = content["rows"]
    assert list(row.values()) == [printed[0], *(cell.replace(",", "") for cell in printed[1:])]
    write_split([file_part([Path(source), Path(target)], None)], tmp_path / "test")
    test_set, signature = str(identify(tmp_path / "test")), tokenized_bleu(["a"], ["a"]).signature
    assert (content["test_set"], content["signatures"]) == (test_set, {"bleu": signature})


def test_unmeasurable_settings_are_named(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks come first, before any time is wasted."""
    empty, line = written(tmp_path, "empty", []), written(tmp_path, "line", ["Haus"])
    start = ["--model", str(model), "--settings", "gpu"]
    with pytest.raises(
        ValueError, match=r"found 2 files of --source but 1 of --target; wanted equal numbers"
    ):
        main([*start, "--source", line, line, "--target", line])
    with pytest.raises(ValueError, match=r"line has 1 line but .*empty has 0"):
        main([*start, "--source", line, "--target", empty])
    with pytest.raises(ValueError, match=r"empty and empty has no sentence pairs. Expected at least one"):
        main([*start, "--source", line, empty, "--target", line, empty])
    with pytest.raises(FileNotFoundError, match=r"gone\.en does not exist or is not a file"):
        main([*start, "--source", str(tmp_path / "gone.en"), "--target", line])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"PyTorch sees no GPU here; wanted one, or --settings threads"):
        main([*start, "--source", line, "--target", line])
