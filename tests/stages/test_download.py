"""The stage download, with params as a user writes them."""

import json
import sys
from pathlib import Path
from typing import Any, get_args

import pooch
import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.plain_text import PlainTextDataset

from convs2s.config.download import DownloadParams
from convs2s.text.corpus.files import read_lines, write_lines
from convs2s.text.sources.split import Split
from pipelines.stages.__main__ import main
from pipelines.stages.download import run
from tests.corpus import pairs, with_pairs
from tests.presets import params_of

ROOT = Path(__file__).parents[2]


def params(folder: Path, **splits: Any) -> DownloadParams:
    """Return params with these splits, and other keys; train and test must not be empty."""
    given: dict[str, Any] = {
        "train": [files("a.en", "a.de")],
        "train_pairs": None,
        "valid": [],
        "development": [],
        "test": [files("a.en", "a.de")],
        **splits,
    }
    common = {"source_language": "en", "target_language": "de", "folder": str(folder), "references": []}
    return DownloadParams.model_validate({**common, **given})


def files(source: str, target: str) -> dict[str, Any]:
    """Return a source of kind files."""
    return {"kind": "files", "source": source, "target": target, "tsv": None, "columns": None}


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_only_training_pairs_are_drawn(tmp_path: Path) -> None:
    """Validation and test sets are used whole."""
    write_lines(tmp_path / "a.en", list("abcde"))
    write_lines(tmp_path / "a.de", list("ABCDE"))
    few = params(tmp_path, train_pairs=2, valid=[files("a.en", "a.de")])
    for split in get_args(Split):
        run(few, split, tmp_path / "downloads", tmp_path / split)
    lines = {split: content(tmp_path / split)["target.txt"].count(b"\n") for split in get_args(Split)}
    assert lines == {"train": 2, "valid": 5, "development": 0, "test": 5}


def test_sources_of_a_split_follow_each_other(tmp_path: Path) -> None:
    """Files, a TSV and an absolute path; the last one is outside download.folder."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.en").write_bytes(b"one\n")
    (tmp_path / "own" / "a.de").write_bytes(b"eins\n")
    (tmp_path / "own" / "b.tsv").write_bytes(b"zwei\ttwo\n")
    (tmp_path / "c.en").write_bytes(b"three\n")
    (tmp_path / "c.de").write_bytes(b"drei\n")
    tsv = {"kind": "files", "source": None, "target": None, "tsv": "b.tsv", "columns": [1, 0]}
    absolute = files(str(tmp_path / "c.en"), str(tmp_path / "c.de"))
    wanted = params(tmp_path / "own", train=[files("a.en", "a.de"), tsv, absolute])
    run(wanted, "train", tmp_path / "downloads", tmp_path / "train")
    found = content(tmp_path / "train")
    assert found["source.txt"] == b"one\ntwo\nthree\n"
    assert found["target.txt"] == b"eins\nzwei\ndrei\n"
    assert str(tmp_path).encode() not in found["provenance.json"]


def test_no_validation_sources_give_empty_files(tmp_path: Path) -> None:
    """The filter then takes every N-th training pair."""
    run(params(tmp_path), "valid", tmp_path / "downloads", tmp_path / "valid")
    found = content(tmp_path / "valid")
    assert (found["source.txt"], found["target.txt"]) == (b"", b"")


def test_url_is_fetched(tmp_path: Path) -> None:
    """The source is a TSV with a file URL; its hash is in the provenance."""
    (tmp_path / "a.tsv").write_bytes(b"one\teins\n")
    fetch = [{"urls": [(tmp_path / "a.tsv").as_uri()], "checksum": pooch.file_hash(tmp_path / "a.tsv")}]
    remote = {
        "kind": "url",
        "fetch": fetch,
        "source": None,
        "target": None,
        "tsv": "a.tsv",
        "columns": [0, 1],
    }
    run(params(tmp_path / "own", train=[remote]), "train", tmp_path / "downloads", tmp_path / "train")
    assert content(tmp_path / "train")["target.txt"] == b"eins\n"
    (source,) = json.loads((tmp_path / "train" / "provenance.json").read_text())["sources"]
    assert source["fetched"] == [{"name": "a.tsv", "sha256": fetch[0]["checksum"]}]


def test_sacrebleu_set_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The languages are those of params.yaml."""
    for name, text in (("dev.en", b"one\n"), ("dev.de", b"eins\n")):
        (tmp_path / name).write_bytes(text)
    urls = [(tmp_path / name).as_uri() for name in ("dev.en", "dev.de")]
    # sacreBLEU prefixes the name of a file that is not an archive with the set's name.
    dataset = PlainTextDataset("own", data=urls, langpairs={"en-de": ["own.dev.en", "own.dev.de"]})
    monkeypatch.setitem(DATASETS, "own", dataset)
    wanted = params(tmp_path, test=[{"kind": "sacrebleu", "name": "own"}])
    run(wanted, "test", tmp_path / "downloads", tmp_path / "test")
    assert content(tmp_path / "test")["source.txt"] == b"one\n"
    assert content(tmp_path / "test")["target.txt"] == b"eins\n"


def test_mtdata_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the command; tests/text/sources/test_mtdata_sets.py has the rest."""
    monkeypatch.setitem(sys.modules, "mtdata", None)
    monkeypatch.setitem(sys.modules, "mtdata.entry", None)
    wanted = params(tmp_path, test=[{"kind": "mtdata", "ids": ["A-b-1-eng-deu"], "sha256": {}}])
    with pytest.raises(ModuleNotFoundError, match=r"pip install -e \.\[mtdata\]"):
        run(wanted, "test", tmp_path / "downloads", tmp_path / "test")


def test_further_references_are_written_with_the_test_pairs(tmp_path: Path) -> None:
    """DUC-2004 has four; only the test split has them."""
    write_lines(tmp_path / "own" / "en", ["a", "b"])
    for name, lines in (("de", ["A", "B"]), ("ref1", ["\ufeffA1", "B1"]), ("ref2", ["A2", ""])):
        write_lines(tmp_path / "own" / name, lines)
    pairs = [files("en", "de")]
    read = params(tmp_path / "own", train=pairs, test=pairs, references=["ref1", "ref2"])
    run(read, "test", tmp_path / "downloads", tmp_path / "test")
    assert list(read_lines(tmp_path / "test" / "target.2.txt")) == ["A1", "B1"]
    assert list(read_lines(tmp_path / "test" / "target.3.txt")) == ["A2", ""]
    provenance = json.loads((tmp_path / "test" / "provenance.json").read_text(encoding="utf-8"))
    assert [file["name"] for file in provenance["references"]] == ["ref1", "ref2"]
    run(read, "train", tmp_path / "downloads", tmp_path / "train")
    assert set(content(tmp_path / "train")) == {"source.txt", "target.txt", "provenance.json"}
    write_lines(tmp_path / "own" / "ref2", ["A2"])
    with pytest.raises(ValueError, match=r"ref2: expected 2 lines, one reference per test pair, found 1"):
        run(read, "test", tmp_path / "downloads", tmp_path / "test")
    (tmp_path / "own" / "ref2").unlink()
    with pytest.raises(FileNotFoundError, match=r"ref2 does not exist .* download\.references in params"):
        run(read, "test", tmp_path / "downloads", tmp_path / "test")


def test_command_of_the_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is how dvc.yaml runs it, with the working folder's params.yaml."""
    few = with_pairs(params_of("tatoeba-en-de"), tmp_path / "own", pairs(3), pairs(40))
    (tmp_path / "params.yaml").write_text(few.model_dump_json())  # JSON is YAML
    monkeypatch.chdir(tmp_path)
    main(["download", "--split=test", "--downloads=data/downloads", "--out=data/raw/test"])
    assert len((tmp_path / "data/raw/test/source.txt").read_text(encoding="utf-8").split("\n")) == 41
