"""Checkpoints are read without executing anything; what is foreign is refused by name."""

import argparse
import collections
import fractions
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.exchange.fairseq_checkpoint import read_checkpoint

WEIGHTS = collections.OrderedDict(a=torch.tensor([1.0, 2.0]))


class Command:
    """Runs a shell command when it is unpickled by someone careless."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def write(path: Path, content: object, *, zipped: bool = True) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_arguments_are_found_in_both_formats(tmp_path: Path, zipped: bool) -> None:
    """A namespace under `args` until 2020; since then a config, the model's part of which is a namespace."""
    old = {"args": argparse.Namespace(arch="fconv", source_lang="en"), "model": WEIGHTS}
    config = {"model": argparse.Namespace(arch="fconv"), "task": {"arch": "task", "source_lang": "en"}}
    new = {"args": None, "cfg": config, "model": WEIGHTS}
    for content in (old, new):
        read = read_checkpoint(write(tmp_path / "x.pt", content, zipped=zipped))
        assert read.arguments == {"arch": "fconv", "source_lang": "en"}
        assert read.tensors["a"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("zipped", [True, False])
def test_a_foreign_class_is_refused_by_its_name(tmp_path: Path, zipped: bool) -> None:
    """Wherever in the file it stands, also where nobody would look."""
    content = {"args": argparse.Namespace(), "model": WEIGHTS, "extra": [fractions.Fraction(1, 2)]}
    with pytest.raises(
        ValueError, match=r"x.pt holds an object of the class fractions.Fraction, which"
    ) as raised:
        read_checkpoint(write(tmp_path / "x.pt", content, zipped=zipped))
    assert "of classes only argparse.Namespace, fairseq.meters.AverageMeter" in str(raised.value)
    assert "save there only what is needed: torch.save(" in str(raised.value)


@pytest.mark.parametrize("zipped", [True, False])
def test_nothing_is_executed(tmp_path: Path, zipped: bool) -> None:
    """A pickle can name any function; this one would leave a file behind."""
    content = {"args": Command(f"touch {tmp_path / 'executed'}"), "model": WEIGHTS}
    with pytest.raises(ValueError, match=r"of the class posix.system"):
        read_checkpoint(write(tmp_path / "x.pt", content, zipped=zipped))
    assert not (tmp_path / "executed").exists()


def test_meters_of_old_trainings_are_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints of 2018 and 2019 hold them; they are read as data of our own and not looked at."""
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
        ({"weights": WEIGHTS}, "x.pt has no tensors under the key `model`; wanted a checkpoint"),
        ({"args": argparse.Namespace(), "model": {"a": 1}}, "x.pt has no tensors under the key `model`"),
        ([1, 2], "x.pt has no tensors under the key `model`"),
        ({"model": WEIGHTS}, "x.pt has neither arguments under `args` nor a config with a model under `cfg`"),
        ({"model": WEIGHTS, "cfg": {"task": {}}}, "x.pt has neither arguments under `args` nor a config"),
    ],
)
def test_other_files_of_tensors_are_told_apart(tmp_path: Path, content: object, message: str) -> None:
    """A file of weights alone does not say what model they belong to."""
    with pytest.raises(ValueError, match=message):
        read_checkpoint(write(tmp_path / "x.pt", content))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [0, 1, 400, -30])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, kept: int, zipped: bool) -> None:
    """PyTorch raises an error of another kind for each kind of damage."""
    path = write(tmp_path / "x.pt", {"args": argparse.Namespace(), "model": WEIGHTS}, zipped=zipped)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"x.pt cannot be read as a checkpoint: .* download incomplete"):
        read_checkpoint(path)


def test_text_is_no_checkpoint(tmp_path: Path) -> None:
    """A page of a server that says "not found", say."""
    (tmp_path / "x.pt").write_text("<html>not found</html>", encoding="utf-8")
    with pytest.raises(ValueError, match=r"x.pt cannot be read as a checkpoint"):
        read_checkpoint(tmp_path / "x.pt")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """As Python names it."""
    with pytest.raises(FileNotFoundError, match=r"nowhere.pt"):
        read_checkpoint(tmp_path / "nowhere.pt")
