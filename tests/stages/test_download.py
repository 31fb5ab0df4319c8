"""The stage download, with params as a user writes them."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.plain_text import PlainTextDataset

from convs2s.base.files import read_folder, read_lines, write_lines
from convs2s.config.download import DownloadParams, Split
from pipelines.stages import download
from tests.web import serve


def files(**names: Any) -> dict[str, Any]:
    """Return a source of kind files."""
    return {"kind": "files", **names}


def run(folder: Path, split: Split, **values: Any) -> Path:
    """Run the stage with these values of the split; train and test must not be empty. Return its output."""
    pairs = {"sources": [files(source="en", target="de")]}
    none = {"sources": list[Any]()}
    splits = {"train": pairs, "valid": none, "development": none, "test": pairs}
    splits[split] = splits[split] | values
    given = DownloadParams.model_validate({"folder": str(folder), **splits})
    download.run(given, ("en", "de"), split, folder / "downloads", folder / split)
    return folder / split


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with five pairs."""
    write_lines(tmp_path / "en", list("abcde"))
    write_lines(tmp_path / "de", list("ABCDE"))
    return tmp_path


def test_only_training_pairs_are_drawn(folder: Path) -> None:
    """Test sets are used whole; a split without sources is empty."""
    drawn = {"train": {"pairs": 2}}
    outs = {split: run(folder, split, **drawn.get(split, {})) for split in get_args(Split)}
    found = {split: len(list(read_folder(out))) for split, out in outs.items()}
    assert found == {"train": 2, "valid": 0, "development": 0, "test": 5}


def test_sources_of_a_split_follow_each_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, a TSV, a file of the network, and a test set of sacreBLEU in the languages of params.yaml."""
    write_lines(folder / "b.tsv", ["zwei\ttwo"])
    with serve() as site:
        site.files |= {"c.tsv": b"three\tdrei\n", "dev.en": b"four\n", "dev.de": b"vier\n"}
        urls = [site.url("dev.en"), site.url("dev.de")]
        # sacreBLEU prefixes the name of a file that is not an archive with the set's name.
        own = PlainTextDataset("own", data=urls, langpairs={"en-de": ["own.dev.en", "own.dev.de"]})
        monkeypatch.setitem(DATASETS, "own", own)
        fetch = {"urls": [site.url("c.tsv")], "checksum": None}
        sources = [
            files(source="en", target="de"),
            files(tsv="b.tsv", columns=[1, 0]),
            {**files(tsv="c.tsv", columns=[0, 1]), "kind": "url", "fetch": [fetch]},
            {"kind": "sacrebleu", "name": "own"},
        ]
        out = run(folder, "train", sources=sources)
    assert list(read_folder(out))[4:] == [("e", "E"), ("two", "zwei"), ("three", "drei"), ("four", "vier")]
    assert str(folder) not in (out / "provenance.json").read_text()


def test_further_references_are_written_with_the_test_pairs(folder: Path) -> None:
    """DUC-2004 has four; only the test split has them."""
    write_lines(folder / "ref1", ["\ufeffA1", *"BCDE"])
    write_lines(folder / "ref2", ["A2", *"BCD", ""])
    out = run(folder, "test", references=["ref1", "ref2"])
    assert list(read_lines(out / "target.2.txt")) == ["A1", *"BCDE"]
    assert list(read_lines(out / "target.3.txt")) == ["A2", *"BCD", ""]
    provenance = json.loads((out / "provenance.json").read_text(encoding="utf-8"))
    assert [file["name"] for file in provenance["references"]] == ["ref1", "ref2"]
    write_lines(folder / "ref2", ["A2"])
    with pytest.raises(ValueError, match=r"ref2: expected 5 lines, one reference per test pair, found 1"):
        run(folder, "test", references=["ref1", "ref2"])
