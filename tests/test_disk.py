"""The estimate of the disk that a run takes."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from convs2s.config.load import parse_params
from convs2s.config.params import Params
from convs2s.model.storage import build_unfilled
from pipelines import disk
from tests.presets import change_preset, params_of
from tests.web import serve

MB = 10**6
TEXT = {"kind": "files", "source": "train.en", "target": "train.de"}


def changed(**train: Any) -> Params:
    """Return the default preset with other training pairs."""
    train = {"sources": [TEXT]} | train
    content = change_preset("tatoeba-en-de", {"download.folder": "own", "download.train": train})
    return parse_params(json.dumps(content), "params.yaml")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with 2 MB of text beside a compressed side of 1 MB."""
    (tmp_path / "own").mkdir()
    for name, size in {"train.en": MB, "train.de": MB, "train.de.gz": MB}.items():
        (tmp_path / "own" / name).write_bytes(bytes(size))
    return tmp_path / "own"


def text_of(params: Params, root: Path) -> float:
    """Return megabytes for everything but the model."""
    return (disk.estimate(params, root)[0] - disk.estimate(changed(pairs=1), root)[0]) / MB


@pytest.mark.parametrize("preset", ["tatoeba-en-de", "wmt14-en-fr-paper", "wmt16-en-ro-word"])
def test_weights_are_counted_from_the_parameters(preset: str) -> None:
    """Their number in the model itself takes a second to find, because PyTorch has to be imported."""
    params = params_of(preset)
    sizes = params.vocabulary.source_size, params.vocabulary.target_size
    model = build_unfilled(params.model, *sizes, padding_id=0)
    assert disk.count_weights(params) == pytest.approx(sum(p.numel() for p in model.parameters()), rel=0.01)


def test_text_is_in_four_stages_and_in_the_cache(own: Path) -> None:
    """Unless that is linked; compressed text grows, and a part of the corpus is smaller."""
    root = own.parent
    assert text_of(changed(), root) == pytest.approx(16, abs=0.01)
    assert text_of(changed(sources=[TEXT | {"target": "train.de.gz"}]), root) == pytest.approx(32, abs=0.01)
    assert text_of(changed(pairs=1000), root) == pytest.approx(2.4, abs=0.01)
    model = disk.estimate(changed(pairs=1), root)[0]
    (root / ".dvc").mkdir()
    (root / ".dvc" / "config").write_text("[cache]\n type = hardlink,copy\n")
    assert text_of(changed(), root) == pytest.approx(8, abs=0.01)
    weights = 4 * disk.count_weights(changed())
    assert model - disk.estimate(changed(pairs=1), root)[0] == pytest.approx(2 * weights, abs=3000)


def test_servers_say_how_large_their_files_are(own: Path) -> None:
    """A file that is here is not asked for; one that nobody has is named."""
    archive = {"kind": "url", "source": "a.en", "target": "a.de"}
    with serve() as site:
        site.files["here/train.tgz"] = bytes(MB)
        fetch = [{"urls": [site.url(name)], "checksum": None} for name in ("here/train.tgz", "gone.zip")]
        params = changed(sources=[archive | {"fetch": fetch}])
        assert disk.estimate(params, own.parent)[1] == ["gone.zip"]
        assert text_of(params, own.parent) == pytest.approx(1 + 3 + 4 * 2 * 3, abs=0.01)
        for name in ("train.tgz", "gone.zip"):
            (own / name).write_bytes(bytes(MB))
        site.asked.clear()
        assert text_of(params, own.parent) == pytest.approx(2 * (3 + 4 * 2 * 3), abs=0.01)
        assert not site.asked


def test_too_little_is_a_warning(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What earlier runs have left in data/ counts as free: much of it is what the run needs."""
    needed = disk.estimate(changed(), own.parent)[0]
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=needed - MB))
    disk.print_disk(changed(), own.parent)
    assert capsys.readouterr().err.startswith("warning: disk: expected up to about 0.2 GB, found 0.2 GB free")
    (own.parent / "data").mkdir()
    (own.parent / "data" / "earlier").write_bytes(bytes(MB))
    disk.print_disk(changed(), own.parent)
    assert capsys.readouterr().out.startswith("disk: expected up to about 0.2 GB")
