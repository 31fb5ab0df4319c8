"""Checkpoints are read without executing anything; unknown classes are refused by name."""

import argparse
import collections
import fractions
import io
import os
import re
import sys
import tarfile
import types
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest
import torch

from convs2s.exchange.fairseq_checkpoint import read_checkpoint

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


def refused(path: Path) -> str:
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


@pytest.mark.fault("security")
@pytest.mark.parametrize("zipped", [True, False])
def test_an_unknown_class_is_refused_by_name(tmp_path: Path, zipped: bool) -> None:
    """Any part of the file could be dangerous, even one that nobody uses."""
    content = {"args": argparse.Namespace(), "model": WEIGHTS, "extra": [fractions.Fraction(1, 2)]}
    with pytest.raises(
        ValueError, match=r"x.pt contains an object of the class fractions.Fraction, which"
    ) as raised:
        read_checkpoint(write(tmp_path / "x.pt", content, zipped=zipped))
    assert "the classes argparse.Namespace, fairseq.meters.AverageMeter" in str(raised.value)
    assert "save only what is needed: torch.save(" in str(raised.value)


@pytest.mark.fault("security")
@pytest.mark.parametrize("zipped", [True, False])
def test_nothing_is_executed(tmp_path: Path, zipped: bool) -> None:
    """A pickle can name any function; this one would leave a file behind."""
    content = {"args": Command(f"touch {tmp_path / 'executed'}"), "model": WEIGHTS}
    with pytest.raises(ValueError, match=r"of the class posix.system"):
        read_checkpoint(write(tmp_path / "x.pt", content, zipped=zipped))
    assert not (tmp_path / "executed").exists()


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


@pytest.mark.fault("input")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"weights": WEIGHTS}, "x.pt has no tensors under the key `model`; wanted a checkpoint"),
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


@pytest.mark.fault("security")
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_an_unknown_class_is_named_in_every_protocol(tmp_path: Path, protocol: int, zipped: bool) -> None:
    """PyTorch stops at the first instruction that it does not know, before it gets to the class."""
    text = {"a": b"x", "b": fractions.Fraction.__module__, "c": fractions.Fraction.__qualname__}
    content = {**text, "args": argparse.Namespace(), "model": WEIGHTS, "extra": fractions.Fraction(1, 2)}
    message = refused(write(tmp_path / "x.pt", content, zipped=zipped, protocol=protocol))
    assert "x.pt contains an object of the class fractions.Fraction, which is refused" in message


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(("protocol", "named"), [(1, "0 or 1"), (3, "3"), (4, "4"), (5, "5")])
def test_another_protocol_is_named(
    tmp_path: Path, protocol: int, named: str, zipped: bool, recwarn: pytest.WarningsRecorder
) -> None:
    """The file is intact: downloading it again would not help, but saving it again does."""
    content = {"bytes": b"x", "args": argparse.Namespace(n=1), "model": WEIGHTS}
    message = refused(write(tmp_path / "x.pt", content, zipped=zipped, protocol=protocol))
    assert f"x.pt is pickled with protocol {named}; wanted protocol 2, the default of torch.save" in message
    assert "save only what is needed: torch.save(" in message
    assert not list(recwarn)


def test_a_torchscript_archive_is_recognized(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Like other PyTorch files, it is a zip file with a pickle, but it contains a program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch recommends other formats
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "x.pt")
    message = refused(tmp_path / "x.pt")
    assert "x.pt is a TorchScript archive, a program with its weights" in message
    assert "give the checkpoint that the archive was made from" in message
    assert not list(recwarn)


def write_tar(path: Path, mode: Literal["w", "w:gz", "w:bz2"], names: Sequence[str]) -> Path:
    with tarfile.open(path, mode) as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return path


def test_the_first_format_is_recognized(tmp_path: Path) -> None:
    """PyTorch recognizes its format of 2016, but advises reading the file without protection."""
    path = write_tar(tmp_path / "x.pt", "w", ["sys_info", "pickle", "tensors", "storages"])
    message = refused(path)
    assert "x.pt has PyTorch's first format, a tar archive, which cannot be read without executing" in message
    assert "load it with the program that wrote it" in message


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2"])
def test_a_packed_archive_is_recognized(tmp_path: Path, mode: Literal["w", "w:gz", "w:bz2"]) -> None:
    """fairseq's models of 2017 are downloaded as archives with model.pt inside."""
    path = write_tar(tmp_path / "wmt14.tar.bz2", mode, ["wmt14.en-de/model.pt", "wmt14.en-de/dict.en.txt"])
    message = refused(path)
    assert "wmt14.tar.bz2 is a tar archive that begins with 'wmt14.en-de/model.pt'; wanted" in message
    assert "Unpack the archive, tar -xf wmt14.tar.bz2, and give the checkpoint in it" in message


@pytest.mark.fault("input")
def test_a_missing_storage_is_damage(tmp_path: Path) -> None:
    """PyTorch raises an AssertionError, as if the bug were its own."""
    path = write(tmp_path / "x.pt", {"args": argparse.Namespace(), "model": WEIGHTS}, zipped=False)
    content = path.read_bytes()
    [_, key] = pickle_keys(content)
    path.write_bytes(content[::-1].replace(key[::-1], bytes(reversed(b"9" * len(key))), 1)[::-1])
    message = refused(path)
    assert "x.pt cannot be read as a checkpoint: AssertionError: storage key" in message
    assert message.endswith("is the download incomplete? Fetch it again.")


def pickle_keys(content: bytes) -> list[bytes]:
    """Return both occurrences of the storage's key in a 2017 file: in the content, and in the last list."""
    found = re.findall(rb"X[\x01-\x20]\x00{3}(\d{6,})q", content)
    assert len(found) == 2
    assert len(set(found)) == 1
    return found


@pytest.mark.fault("input")
@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (b"ctorch\nFloatStorage\n", b"ctorch\nSize\n", "AttributeError"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n", b"ccollections\nOrderedDict\n", "TypeError"),
        (b"\x80\x02}q\x00", b"\x80\x02}h\x09", "KeyError"),
    ],
)
def test_a_pickle_that_is_wrong_inside_is_damage(tmp_path: Path, old: bytes, new: bytes, name: str) -> None:
    """The pickle's instructions can be read but not executed."""
    path = write(tmp_path / "x.pt", {"args": argparse.Namespace(), "model": WEIGHTS})

    def change(content: bytes) -> bytes:
        assert content.count(old) == 1
        return content.replace(old, new)

    message = refused(rewrite(path, change))
    assert f"x.pt cannot be read as a checkpoint: {name}" in message
    assert message.endswith("is the download incomplete? Fetch it again.")


@pytest.mark.fault("input")
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


@pytest.mark.fault("input")
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [0, 1, 400, -30])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, kept: int, zipped: bool) -> None:
    """PyTorch raises a different error for each kind of damage."""
    path = write(tmp_path / "x.pt", {"args": argparse.Namespace(), "model": WEIGHTS}, zipped=zipped)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"x.pt cannot be read as a checkpoint: .* download incomplete"):
        read_checkpoint(path)


def test_text_is_not_a_checkpoint(tmp_path: Path) -> None:
    """A failed download may be a server's "not found" page."""
    (tmp_path / "x.pt").write_text("<html>not found</html>", encoding="utf-8")
    with pytest.raises(ValueError, match=r"x.pt cannot be read as a checkpoint"):
        read_checkpoint(tmp_path / "x.pt")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Python's own error already names it."""
    with pytest.raises(FileNotFoundError, match=r"nowhere.pt"):
        read_checkpoint(tmp_path / "nowhere.pt")
