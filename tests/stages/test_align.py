"""The stage align, with each backend."""

from pathlib import Path
from typing import Literal

import pytest
from ruamel.yaml import YAML

from convs2s.config.align import AlignParams
from convs2s.text.alignment.dictionary import read_dictionary
from pipelines.stages import align
from pipelines.stages.__main__ import main

ROOT = Path(__file__).parent.parent.parent
SOURCE = "the house\nthe book\na book\na house\nthe blue book\n"
TARGET = "das Haus\ndas Buch\nein Buch\nein Haus\ndas blaue Buch\n"


@pytest.fixture
def train(tmp_path: Path) -> Path:
    """Return a folder with a small corpus."""
    folder = tmp_path / "data" / "filtered" / "train"
    folder.mkdir(parents=True)
    (folder / "source.txt").write_text(SOURCE)
    (folder / "target.txt").write_text(TARGET)
    return folder


def run(
    train: Path, out: Path, backend: Literal["builtin", "exact", "fast_align", "none"], replaces: bool = True
) -> Path:
    """Run the stage; return the dictionary it wrote."""
    params = AlignParams(backend=backend, iterations=5, candidates=None)
    align.run(params, replaces, train / "source.txt", train / "target.txt", out)
    return out / "dictionary.tsv"


def test_builtin_finds_the_translations_of_a_small_corpus(train: Path, tmp_path: Path) -> None:
    """Co-occurrence determines which words align; counts are the words' frequencies."""
    dictionary = run(train, tmp_path / "data" / "alignment", "builtin")
    assert dictionary.read_text() == (
        "source\ttarget\tcount\tlinks\na\tein\t2\t2\nblue\tblaue\t1\t1\nbook\tBuch\t3\t3\n"
        "house\tHaus\t2\t2\nthe\tdas\t3\t3\n"
    )
    assert [path.name for path in (tmp_path / "data" / "alignment").iterdir()] == ["dictionary.tsv"]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["alignment", "filtered"]


def test_exact_is_fast_align_without_the_program(train: Path, tmp_path: Path) -> None:
    """For such a small corpus, both formulas find the right words."""
    assert read_dictionary(run(train, tmp_path / "alignment", "exact"))["house"] == "Haus"


def test_nothing_is_aligned_that_nothing_reads(
    train: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without replacement, nothing reads the dictionary; with backend none, unknown words are copied."""
    assert read_dictionary(run(train, tmp_path / "one", "none")) == {}
    assert read_dictionary(run(train, tmp_path / "two", "builtin", replaces=False)) == {}
    assert "iteration" not in capsys.readouterr().err


def test_fast_align_is_run_when_chosen(train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake programs link the first words of each pair and, in the last pair, also the second words."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("fast_align", "atools"):
        (programs / name).write_text("#!/bin/sh\nprintf '0-0\\n0-0\\n0-0\\n0-0\\n1-1\\n'\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    dictionary = read_dictionary(run(train, tmp_path / "alignment", "fast_align"))
    assert dictionary == {"the": "das", "a": "ein", "blue": "blaue"}


def test_missing_fast_align_is_an_error(train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No partial dictionary is left for a later stage to use."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="fast_align is not on PATH"):
        run(train, tmp_path / "alignment", "fast_align")
    assert not (tmp_path / "alignment" / "dictionary.tsv").exists()


def test_unequal_files_are_an_error(train: Path, tmp_path: Path) -> None:
    """The two sides must correspond line by line."""
    (train / "target.txt").write_text("das Haus\n")
    with pytest.raises(ValueError, match=r"source\.txt has 5 lines but .*target\.txt has 1"):
        run(train, tmp_path / "alignment", "builtin")


def test_the_command_line_takes_values_of_params_yaml(
    train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """This is how dvc.yaml calls it, with the values of params.yaml."""
    yaml = YAML()
    params = yaml.load(ROOT / "params.yaml")
    params["align"] = {"backend": "builtin", "iterations": 3, "candidates": None}
    params["replace"]["enabled"] = True
    yaml.dump(params, tmp_path / "params.yaml")
    monkeypatch.chdir(tmp_path)
    sides = [f"--{side}=data/filtered/train/{side}.txt" for side in ("source", "target")]
    main(["align", *sides, "--out=data/alignment"])
    assert "\nalign: iteration 3 of 3: linked 5 sentence pairs\n" in capsys.readouterr().err
    assert read_dictionary(tmp_path / "data/alignment/dictionary.tsv")["house"] == "Haus"
