"""Models from the Hugging Face Hub; no network."""

import shutil
import sys
from pathlib import Path
from unittest.mock import create_autospec

import huggingface_hub
import pytest

import convs2s
from convs2s.cli import main
from convs2s.package.folder import locate
from tests.package.small_package import write_small_package


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Play the Hub with a folder; calls must have the signature of huggingface_hub."""
    folder = shutil.copytree(write_small_package(tmp_path), tmp_path / "hub")

    def snapshot_download(repository: str, revision: str | None) -> str:
        if repository != "me/toy":
            raise OSError("404: repository not found")
        return str(folder / (revision or ""))

    download = create_autospec(huggingface_hub.snapshot_download, side_effect=snapshot_download)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return folder


def test_a_model_is_loaded_from_the_hub(repository: Path) -> None:
    """The digests in model.json are checked after a download."""
    texts = ["ein Haus.", "der Hund"]
    expected = convs2s.load(repository, "cpu").translate(texts)
    assert convs2s.load("hf:me/toy", "cpu").translate(texts) == expected
    assert locate("hf:me/toy@v1") == repository / "v1"
    assert locate("data/models/1") == Path("data/models/1")
    (repository / "target.tsv").write_bytes((repository / "target.tsv").read_bytes()[:-4])
    with pytest.raises(ValueError, match=r"target\.tsv has changed since it was written"):
        convs2s.load("hf:me/toy", "cpu")


def test_what_the_hub_does_not_have_is_an_error(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name without an owner is reported before a download; a missing library names its extra."""
    for name in ("hf:", "hf:toy", "hf:toy@me/v1"):
        with pytest.raises(ValueError, match=r"expected hf:OWNER/NAME or hf:OWNER/NAME@REVISION"):
            locate(name)
    with pytest.raises(OSError, match="404"):
        locate("hf:me/other")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["translate", "--model", "hf:me/toy"]) == 2
    assert "pip install 'convs2s[hub]'" in capsys.readouterr().err
