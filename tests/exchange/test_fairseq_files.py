"""fairseq's files: checkpoints are read without executing anything; dictionaries keep fairseq's ids."""

import argparse
import collections
import fractions
import io
import os
import sys
import tarfile
import types
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from convs2s.exchange.fairseq_files import read_checkpoint, read_fairseq_dictionary
from convs2s.text.vocabulary.vocabulary import read_vocabulary, write_vocabulary

WEIGHTS = collections.OrderedDict(a=torch.tensor([1.0, 2.0]))


class Command:
    """Runs a shell command when it is unpickled carelessly."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def write(path: Path, content: object, *, zipped: bool = True, protocol: int = 2) -> Path:
    torch.save(content, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    return path


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> Path:
    """Change the pickle in a zip file, keeping its checksums valid."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, change(content) if name.endswith("/data.pkl") else content)
    return path


def check_refusal(path: Path) -> str:
    """Check that reading fails; return the message, which must not advise loading without protection."""
    with pytest.raises(ValueError) as raised:
        read_checkpoint(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert not [word for word in ("weights_only", "safe_globals", "likely succeed", "\n") if word in message]
    return message


@pytest.mark.parametrize("zipped", [True, False])
def test_arguments_are_found_in_both_formats(tmp_path: Path, zipped: bool) -> None:
    """Until 2020 fairseq saved a namespace under `args`, and later a config whose `model` is a namespace."""
    old = {"args": argparse.Namespace(arch="fconv", source_lang="en"), "model": WEIGHTS}
    config = {"model": argparse.Namespace(arch="fconv"), "task": {"arch": "task", "source_lang": "en"}}
    new = {"args": None, "cfg": config, "model": WEIGHTS}
    for content in (old, new):
        read = read_checkpoint(write(tmp_path / "x.pt", content, zipped=zipped))
        assert read.arguments == {"arch": "fconv", "source_lang": "en"}
        assert read.tensors["a"].tolist() == [1.0, 2.0]


def first_format(path: Path) -> None:
    """Write a file as PyTorch did in 2016: a tar archive."""
    with tarfile.open(path, "w") as archive:
        for name in ("sys_info", "pickle", "tensors", "storages"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())


def torchscript(path: Path) -> None:
    """Write a program with its weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch recommends other formats
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)


REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (
        lambda path: write(path, {"model": WEIGHTS, "x": fractions.Fraction(1, 2)}),
        "GLOBAL fractions.Fraction",
    ),
    (lambda path: write(path, [fractions.Fraction(1, 2)], zipped=False), "GLOBAL fractions.Fraction"),
    (
        lambda path: write(path, {"args": Command(f"touch {path}.run"), "model": WEIGHTS}),
        "GLOBAL posix.system",
    ),
    (lambda path: write(path, Command(f"touch {path}.run"), zipped=False), "GLOBAL posix.system"),
    (lambda path: write(path, {"model": WEIGHTS}, protocol=4), "Unsupported operand 149"),
    (torchscript, "TorchScript"),
    (first_format, "legacy .tar"),
    (lambda path: path.write_text("<html>not found</html>"), "Unsupported operand 60"),
    (lambda path: path.write_bytes(b""), "EOFError: "),
]


@pytest.mark.parametrize(("make", "found"), REFUSED)
def test_a_file_that_is_not_safe_is_refused_unexecuted(
    tmp_path: Path, make: Callable[[Path], object], found: str, recwarn: pytest.WarningsRecorder
) -> None:
    """One message says what was found and expected, without PyTorch's advice to load without protection."""
    make(tmp_path / "x.pt")
    message = check_refusal(tmp_path / "x.pt")
    assert f"only tensors, plain values and argparse.Namespace; found: {found}" in message
    assert not (tmp_path / "x.pt.run").exists()
    assert not list(recwarn)


def test_meters_of_old_trainings_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints of 2018 and 2019 contain them; they are read into a class of ours and never used."""
    kind = type("TimeMeter", (), {"__module__": "fairseq.meters"})
    meter = kind()
    meter.__dict__["n"] = 3
    content = {"args": argparse.Namespace(arch="fconv"), "model": WEIGHTS, "extra_state": {"wps": meter}}
    with monkeypatch.context() as patch:
        module = types.ModuleType("fairseq.meters")
        module.__dict__["TimeMeter"] = kind
        patch.setitem(sys.modules, "fairseq", types.ModuleType("fairseq"))
        patch.setitem(sys.modules, "fairseq.meters", module)
        path = write(tmp_path / "x.pt", content)
    assert b"fairseq.meters" in path.read_bytes()
    assert read_checkpoint(path).arguments == {"arch": "fconv"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"weights": WEIGHTS}, "x.pt has no tensors under the key `model`; expected a checkpoint"),
        ({"args": argparse.Namespace(), "model": {"a": 1}}, "x.pt has no tensors under the key `model`"),
        ({"args": argparse.Namespace(), "model": {1: WEIGHTS["a"]}}, "x.pt has no tensors under the key"),
        ([1, 2], "x.pt has no tensors under the key `model`"),
        ({"model": WEIGHTS}, "x.pt has neither arguments under `args` nor a config with a model under `cfg`"),
        ({"model": WEIGHTS, "cfg": {"task": {}}}, "x.pt has neither arguments under `args` nor a config"),
    ],
)
def test_other_files_of_tensors_are_refused(tmp_path: Path, content: object, message: str) -> None:
    """A file of weights alone does not say which model they belong to."""
    with pytest.raises(ValueError, match=message):
        read_checkpoint(write(tmp_path / "x.pt", content))


@pytest.mark.parametrize("kind", ["zip", "pickle in a zip", "2017"])
def test_any_damage_raises_only_documented_errors(tmp_path: Path, kind: str) -> None:
    """Bytes are changed, dropped and duplicated; a file with a harmless change may still be read."""
    random = Random(17)
    content = {"args": argparse.Namespace(arch="fconv", n=[1, 2.5]), "model": WEIGHTS, "best": None}
    path = write(tmp_path / "x.pt", content, zipped=kind != "2017")
    whole, errors = path.read_bytes(), 0

    def spoil(content: bytes) -> bytes:
        start = random.randrange(len(content))
        end = start + random.choice([0, 1, 1, 1, 4])
        spoiled = random.choice([random.randbytes(end - start), content[start:end] * 2, b"", b"."])
        return content[:start] + spoiled + content[end:]

    for _ in range(150):
        path.write_bytes(whole if kind == "pickle in a zip" else spoil(whole))
        if kind == "pickle in a zip":
            rewrite(path, spoil)
        try:
            assert read_checkpoint(path).path == path
        except ValueError as error:
            assert str(error).startswith(str(path))
            assert "weights_only" not in str(error)
            errors += 1
    assert errors > 30


def write_dictionary(folder: Path, text: str) -> Path:
    path = folder / "dict.en.txt"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_entries_stay_in_order_and_the_start_symbol_is_last(tmp_path: Path) -> None:
    """Only the last space separates word and count; rows added as filler have count 0."""
    text = "a 12\n@@ 3\n\u00a0\u2028x 2\n<unk> 1 #fairseq:overwrite\nmadeupword0000 0\n"
    assert read_fairseq_dictionary(write_dictionary(tmp_path, text)) == [
        ("a", 12), ("@@", 3), ("\u00a0\u2028x", 2), ("<unk>", 1), ("madeupword0000", 0), ("<s>", 0),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["", "word", "word x", "word -1", "word 1.5", " 3", "a\tb 3", "word ²"])
def test_a_line_that_is_no_entry_is_named(tmp_path: Path, line: str) -> None:
    """The error must give the line's number and content."""
    with pytest.raises(ValueError, match=r"dict.en.txt, line 2: expected 'word count', found"):
        read_fairseq_dictionary(write_dictionary(tmp_path, f"a 1\n{line}\nb 1\n"))


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


@pytest.mark.parametrize("mark", ["<pad>", "</s>", "<unk>"])
def test_a_row_spelled_like_a_special_symbol_is_a_word(tmp_path: Path, mark: str) -> None:
    """As in fairseq, the symbol itself has no row; early versions wrote such a word without a flag."""
    for flag in ("", " #fairseq:overwrite"):
        entries = read_fairseq_dictionary(write_dictionary(tmp_path, f"a 2\n{mark} 1{flag}\n"))
        assert entries == [("a", 2), (mark, 1), ("<s>", 0)]


def test_a_word_occurs_once_unless_flagged(tmp_path: Path) -> None:
    """fairseq refuses the later row; with the flag, both rows keep their ids."""
    expected = (
        r"line 3: expected each word once, but 'a' is already in line 1.* append #fairseq:overwrite to it"
    )
    with pytest.raises(ValueError, match=expected):
        read_fairseq_dictionary(write_dictionary(tmp_path, "a 1\nb 1\na 1\n"))
    with pytest.raises(ValueError, match="line 1: expected each word once, but '<s>' is already the start"):
        read_fairseq_dictionary(write_dictionary(tmp_path, "<s> 1\n"))
