"""fairseq's files: checkpoints are read without executing anything; dictionaries keep fairseq's ids."""

import os
import sys
import types
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from convs2s.exchange.fairseq_files import read_checkpoint, read_fairseq_dictionary
from convs2s.ids.vocabulary import read_vocabulary, write_vocabulary

WEIGHTS = OrderedDict(a=torch.tensor([1.0, 2.0]))


class Command:
    """Runs a shell command when it is unpickled carelessly."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def write(path: Path, content: object, *, zipped: bool = True, protocol: int = 2) -> Path:
    torch.save(content, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_arguments_are_found_in_both_formats(tmp_path: Path, zipped: bool) -> None:
    """Until 2020 fairseq saved a namespace under `args`, and later a config whose `model` is a namespace."""
    old = {"args": Namespace(arch="fconv", source_lang="en"), "model": WEIGHTS}
    config = {"model": Namespace(arch="fconv"), "task": {"arch": "task", "source_lang": "en"}}
    new = {"args": None, "cfg": config, "model": WEIGHTS}
    for content in (old, new):
        read = read_checkpoint(write(tmp_path / "x.pt", content, zipped=zipped))
        assert read.arguments == {"arch": "fconv", "source_lang": "en"}
        assert read.tensors["a"].tolist() == [1.0, 2.0]


def cut(path: Path) -> None:
    """Write the first half of a checkpoint, as an interrupted download does."""
    content = write(path, {"model": WEIGHTS}).read_bytes()
    path.write_bytes(content[: len(content) // 2])


UNSAFE = "only tensors, plain values and argparse.Namespace; found: "
REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: write(path, {"model": WEIGHTS, "x": Fraction(1, 2)}), UNSAFE + "GLOBAL fractions.Fraction"),
    (lambda path: write(path, Command(f"touch {path}.run")), UNSAFE + "GLOBAL posix.system"),
    (lambda path: write(path, Command(f"touch {path}.run"), zipped=False), UNSAFE + "GLOBAL posix.system"),
    (lambda path: write(path, {"model": WEIGHTS}, protocol=4), UNSAFE + "Unsupported operand 149"),
    (lambda path: path.write_text("<html>not found</html>"), UNSAFE + "Unsupported operand 60"),
    (cut, UNSAFE + "RuntimeError: PytorchStreamReader failed"),
    (lambda path: write(path, {"args": Namespace(), "model": {"a": 1}}), "has no tensors under the key"),
    (lambda path: write(path, {"model": WEIGHTS}), "has neither arguments under"),
    (lambda path: write(path, {"model": WEIGHTS, "cfg": {"task": {}}}), "has neither arguments under"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_another_file_is_refused_unexecuted(
    tmp_path: Path, make: Callable[[Path], object], message: str, recwarn: pytest.WarningsRecorder
) -> None:
    """One message says what was found and expected, without PyTorch's advice to load without protection."""
    make(tmp_path / "x.pt")
    with pytest.raises(ValueError) as raised:
        read_checkpoint(tmp_path / "x.pt")
    text = str(raised.value)
    assert text.startswith(str(tmp_path / "x.pt"))
    assert message in text
    assert not [word for word in ("weights_only", "safe_globals", "likely succeed", "\n") if word in text]
    assert not (tmp_path / "x.pt.run").exists()
    assert not list(recwarn)


def test_meters_of_old_trainings_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints of 2018 and 2019 contain them; they are read into a class of ours and never used."""
    kind = type("TimeMeter", (), {"__module__": "fairseq.meters"})
    meters = {"wps": kind()}
    meters["wps"].__dict__["n"] = 3
    content = {"args": Namespace(arch="fconv"), "model": WEIGHTS, "extra_state": meters}
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "fairseq", types.ModuleType("fairseq"))
        patch.setitem(sys.modules, "fairseq.meters", SimpleNamespace(TimeMeter=kind))
        path = write(tmp_path / "x.pt", content)
    assert b"fairseq.meters" in path.read_bytes()
    assert read_checkpoint(path).arguments == {"arch": "fconv"}


def write_dictionary(folder: Path, text: str) -> Path:
    path = folder / "dict.en.txt"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize("flag", ["", " #fairseq:overwrite"])
def test_entries_stay_in_order_and_the_start_symbol_is_last(tmp_path: Path, flag: str) -> None:
    """Only the last space separates word and count; a special symbol has no row, so one is a word."""
    text = f"a 12\n@@ 3\n\u00a0\u2028x 2\n<unk> 1{flag}\n<pad> 1{flag}\n</s> 1{flag}\nfiller 0\n"
    assert read_fairseq_dictionary(write_dictionary(tmp_path, text)) == [
        ("a", 12), ("@@", 3), ("\u00a0\u2028x", 2), ("<unk>", 1), ("<pad>", 1), ("</s>", 1), ("filler", 0),
        ("<s>", 0),
    ]  # fmt: skip


def test_the_last_of_several_rows_for_a_word_is_used(tmp_path: Path) -> None:
    """That is what fairseq's flag means; earlier rows keep their ids, under names that no word can have."""
    text = "a 9\nb 8\na 7 #fairseq:overwrite\n<s> 6 #fairseq:overwrite\na 5 #fairseq:overwrite \nc 4\n"
    entries = read_fairseq_dictionary(write_dictionary(tmp_path, text))
    assert [count for _, count in entries] == [9, 8, 7, 6, 5, 4, 0]
    write_vocabulary(tmp_path / "source.tsv", entries)
    vocabulary = read_vocabulary(tmp_path / "source.tsv")
    assert vocabulary.ids(["a", "b", "<s>", "c"]) == [3 + line for line in (4, 1, 3, 5)]
    for hidden in (0, 2, 6):
        assert " " in vocabulary.entry(3 + hidden)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((f"a 1\n{line}\nb 1\n", "line 2: expected 'word count', found") for line in (
            "", "word", "word -1", " 3", "a\tb 3", "word ²",
        )),
        ("a 1\nb 1\na 1\n", "line 3: expected each word once, but 'a' .* in line 1.* append #fairseq"),
        ("<s> 1\n", "line 1: expected each word once, but '<s>' is already the start"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_a_dictionary_is_named(tmp_path: Path, text: str, message: str) -> None:
    """fairseq refuses these rows, too; with its flag, both rows of a word keep their ids."""
    with pytest.raises(ValueError, match=f"dict.en.txt, {message}"):
        read_fairseq_dictionary(write_dictionary(tmp_path, text))
