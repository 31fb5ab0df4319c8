"""Helpers for the tests of `convs2s import-fairseq`."""

import json
from pathlib import Path

import pytest

from tests.golden import import_command, write_dictionaries


def settings(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")))


def failed(capsys: pytest.CaptureFixture[str], file: Path, folder: Path, *options: str) -> str:
    """Check that the import fails and leaves nothing behind; return the message."""
    assert import_command(file, write_dictionaries(folder), folder / "out", *options) == 2
    assert not (folder / "out").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return capsys.readouterr().err
