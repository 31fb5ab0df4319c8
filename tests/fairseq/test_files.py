"""fairseq's files: checkpoints are read without executing anything; dictionaries keep fairseq's ids."""

import os
import sys
import zipfile
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch

from convs2s.fairseq.files import read_fairseq_checkpoint, read_fairseq_dictionary
from convs2s.ids.vocabulary import read_vocabulary, write_vocabulary

WEIGHTS = OrderedDict(a=torch.tensor([1.0, 2.0]))


class Command:
    """Runs a shell command when it is unpickled carelessly."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def write(path: Path, content: object, *, zipped: bool = True) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_arguments_are_found_in_both_formats(
    tmp_path: Path, zipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until 2020 fairseq saved a namespace under `args`, and later a config whose `model` is a namespace.

    Checkpoints of 2018 and 2019 also contain meters, which are read into a class of ours and never used.
    """
    meter = type("TimeMeter", (), {"__module__": "fairseq.meters"})
    state = {"args": Namespace(arch="fconv", source_lang="en"), "model": WEIGHTS, "meters": {"wps": meter()}}
    config = {"model": Namespace(arch="fconv"), "task": {"arch": "task", "source_lang": "en"}}
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "fairseq", ModuleType("fairseq"))
        patch.setitem(sys.modules, "fairseq.meters", SimpleNamespace(TimeMeter=meter))
        old = write(tmp_path / "old.pt", state, zipped=zipped)
    new = write(tmp_path / "new.pt", {"args": None, "cfg": config, "model": WEIGHTS}, zipped=zipped)
    for path in (old, new):
        read = read_fairseq_checkpoint(path)
        assert read.arguments == {"arch": "fconv", "source_lang": "en"}
        assert read.tensors["a"].tolist() == [1.0, 2.0]


def cut(path: Path) -> None:
    """Write the first half of a checkpoint, as an interrupted download does."""
    content = write(path, {"model": WEIGHTS}).read_bytes()
    path.write_bytes(content[: len(content) // 2])


ARGUMENTS = Namespace(arch="fconv")


def write_model(path: Path, value: object, name: object = "a") -> Path:
    return write(path, {"args": ARGUMENTS, "model": {name: value}})


def compress(path: Path) -> None:
    """Pack zeros into a small archive, which torch.save would not."""
    with zipfile.ZipFile(write_model(path, torch.zeros(10**5))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def flip_bit(path: Path) -> None:
    """Change a weight as damage does, but not the checksum that the archive has of it."""
    content = bytearray(write_model(path, torch.ones(1000)).read_bytes())
    content[content.index(torch.ones(100).numpy().tobytes())] ^= 1
    path.write_bytes(content)


UNSAFE = "only tensors, plain values and argparse.Namespace; found: "


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: write(path, Command(f"touch {path}.run")), UNSAFE + "GLOBAL posix.system"),
        (lambda path: path.write_text("<html>not found</html>"), UNSAFE + "Unsupported operand 60"),
        (cut, UNSAFE + "RuntimeError: PytorchStreamReader failed"),
        (flip_bit, UNSAFE + "ValueError: damaged data, as the checksum of .* shows"),
        (lambda path: write(path, {"model": WEIGHTS}), "expected a checkpoint saved by fairseq"),
        (lambda path: write(path, [1]), "expected a checkpoint saved by fairseq"),
        (lambda path: write(path, {"cfg": [1], "model": WEIGHTS}), "expected a checkpoint saved by fairseq"),
        (lambda path: write(path, {"cfg": torch.ones(2), "model": WEIGHTS}), "checkpoint saved by fairseq"),
        (lambda path: write(path, {"args": "text", "model": WEIGHTS}), "checkpoint saved by fairseq"),
        (lambda path: write(path, {"args": ARGUMENTS, "model": [1]}), "checkpoint saved by fairseq"),
        (lambda path: write_model(path, "text"), "expected names and plain tensors .*, found str under 'a'"),
        (lambda path: write_model(path, [1, 2]), "expected names and plain tensors .*, found list under 'a'"),
        (lambda path: write_model(path, torch.ones(2), 3), "plain tensors .*, found a tensor .* under 3"),
        (
            lambda path: write_model(path, torch.ones(2) * 1j),
            "tensors of real .* found a tensor of torch.comp",
        ),
        (lambda path: write_model(path, torch.ones(2).to_sparse()), "tensors .* found .* torch.sparse_coo"),
        (lambda path: write_model(path, torch.ones(2, device="meta")), "tensors .* found .* on meta"),
        (lambda path: write_model(path, torch.ones(1).expand(10**6)), "bytes can hold, found .* 4,000,000"),
        (compress, "found: ValueError: an archive that grows to"),
    ],
)
def test_another_file_is_refused_unexecuted(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    """One message says what was found and expected, without PyTorch's advice to load without protection."""
    make(tmp_path / "x.pt")
    with pytest.raises(ValueError, match=f"{tmp_path}/x.pt.*{message}") as raised:
        read_fairseq_checkpoint(tmp_path / "x.pt")
    assert "weights_only" not in str(raised.value)
    assert not (tmp_path / "x.pt.run").exists()


def test_entries_of_a_dictionary_keep_their_ids(tmp_path: Path) -> None:
    """Only the last space separates word and count; a special symbol has no row, so one is a word.

    Of several rows for a word, the last is used: that is what fairseq's flag means. Earlier ones keep their
    ids, under names that no word can have.
    """
    path = tmp_path / "dict.en.txt"
    path.write_text(
        "a 12\n@@ 3\n\u00a0\u2028x 2\n<unk> 1\na 7 #fairseq:overwrite\n<s> 6 #fairseq:overwrite\nb 0\n",
        encoding="utf-8",
    )
    entries = read_fairseq_dictionary(path)
    assert entries == [
        ("<overwritten in line 5>", 12), ("@@", 3), ("\u00a0\u2028x", 2), ("<unk>", 1), ("a", 7), ("<s>", 6),
        ("b", 0), ("<overwritten in line 6>", 0),
    ]  # fmt: skip
    write_vocabulary(tmp_path / "source.tsv", entries)
    assert read_vocabulary(tmp_path / "source.tsv").ids(["a", "<s>", "b"]) == [3 + row for row in (4, 5, 6)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1\nword\n", "line 2: expected 'word count', found 'word'"),
        ("a 1\n\n", "line 2: expected 'word count', found ''"),
        ("a 1\n\nb 1\n", "line 2: expected 'word count', found ''"),
        ("a 1\nb\tc 1\n", "line 2: expected 'word count', found 'b.*c 1'"),
        ("a 1\nb 1 2\n", "line 2: expected 'word count', found 'b 1 2'"),
        ("a 1\nb -1\n", "line 2: expected 'word count', found 'b -1'"),
        ("a 1\nb 1.0\n", "line 2: expected 'word count', found 'b 1.0'"),
        (f"a {'9' * 5000}\n", "line 1: expected 'word count', found 'a 999"),
        ("a 1\nb 1\na 1\n", "line 3: expected each word once, but 'a' .* append #fairseq"),
    ],
)
def test_a_wrong_line_of_a_dictionary_is_named(tmp_path: Path, text: str, message: str) -> None:
    """fairseq refuses these rows, too; with its flag, both rows of a word keep their ids."""
    (tmp_path / "dict.en.txt").write_text(text)
    with pytest.raises(ValueError, match=f"dict.en.txt, {message}"):
        read_fairseq_dictionary(tmp_path / "dict.en.txt")


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (MemoryError(), MemoryError),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes."),
            RuntimeError,
        ),
        (
            RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 999999999 bytes."
            ),
            ValueError,
        ),
    ],
)
def test_too_little_memory_is_not_a_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception]
) -> None:
    """It gets advice of its own. But no tensor is larger than its file: such a one is a fault."""
    path = write_model(tmp_path / "x.pt", torch.ones(2))
    monkeypatch.setattr(torch, "load", mock.Mock(side_effect=error))
    with pytest.raises(raised) as found:
        read_fairseq_checkpoint(path)
    assert (found.value is error) == (raised is not ValueError)
