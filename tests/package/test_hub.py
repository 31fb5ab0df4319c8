"""Models on the Hugging Face Hub: what is sent, what comes back, and errors; no network."""

import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import huggingface_hub
import pytest

import convs2s
from convs2s.cli import main
from convs2s.package.hub import locate
from tests.package.small_package import write_small_package


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Play the Hub with a folder; calls must have the signatures of huggingface_hub."""
    folder = tmp_path / "hub"

    def create_commit(repository: str, operations: list[Any], **_: object) -> None:
        assert repository == "me/toy"
        for operation in operations:
            content = operation.path_or_fileobj
            content = Path(content).read_bytes() if isinstance(content, str) else content
            (folder / operation.path_in_repo).write_bytes(content)

    def create_repo(repository: str, **_: object) -> str:
        folder.mkdir()
        return f"https://hub.test/{repository}"

    def snapshot_download(repository: str, revision: str | None) -> str:
        if (repository, revision) not in {("me/toy", None), ("me/toy", "v1")}:
            raise OSError("404: repository not found")
        return str(folder)

    api = create_autospec(huggingface_hub.HfApi, instance=True)
    api.create_repo.side_effect, api.create_commit.side_effect = create_repo, create_commit
    download = create_autospec(huggingface_hub.snapshot_download, side_effect=snapshot_download)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return folder


def test_a_model_goes_to_the_hub_and_comes_back(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The uploaded card names the commit; the folder's own card does not change."""
    folder = write_small_package(tmp_path)
    card = "# toy\n\n| | |\n|---|---|\n| seed | 7 |\n"
    (folder / "README.md").write_text(card)
    assert main(["upload", "me/toy", "--model", str(folder), "--commit", "abcdef1"]) == 0
    assert capsys.readouterr().out.endswith("/me/toy\n")
    assert (repository / "README.md").read_text() == card + "| commit of the code | `abcdef1` |\n"
    assert (folder / "README.md").read_text() == card
    texts = ["ein Haus.", "der Hund"]
    wanted = convs2s.load(folder, "cpu").translate(texts)
    assert convs2s.load("hf:me/toy", "cpu").translate(texts) == wanted
    assert locate("hf:me/toy@v1") == repository


def test_damage_is_found_on_both_sides(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The digests in model.json are checked before a repository is created, and after a download."""
    folder = write_small_package(tmp_path)
    (folder / "dictionary.tsv").unlink()
    assert main(["upload", "me/toy", "--model", str(folder)]) == 2
    assert "lacks dictionary.tsv" in capsys.readouterr().err
    weights = write_small_package(tmp_path) / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert main(["upload", "me/toy", "--model", str(folder)]) == 2
    assert "weights.safetensors has changed since it was written" in capsys.readouterr().err
    assert not repository.exists()
    shutil.copytree(write_small_package(tmp_path), repository)
    (repository / "target.tsv").write_bytes((repository / "target.tsv").read_bytes()[:-4])
    with pytest.raises(ValueError, match=r"target\.tsv has changed since it was written"):
        convs2s.load("hf:me/toy", "cpu")


def test_names_of_the_hub(repository: Path) -> None:
    """A wrong name is reported before anything is downloaded; without hf:, it is a folder."""
    for name in ("hf:", "hf:toy", "hf:me/toy@", "hf:me/../toy/x", "hf:me/toy name"):
        with pytest.raises(ValueError, match=r"expected hf:OWNER/NAME or hf:OWNER/NAME@REVISION"):
            locate(name)
    with pytest.raises(OSError, match="404"):
        locate("hf:me/other")
    assert locate("data/models/1") == Path("data/models/1")


def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python and the command line give the same message."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["translate", "--model", "hf:me/toy"]) == 2
    assert "pip install 'convs2s[hub]'" in capsys.readouterr().err
