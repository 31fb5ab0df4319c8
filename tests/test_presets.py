"""Every preset is a valid params file, and those of real corpora find their data."""

import json
from pathlib import Path

import pytest

from convs2s.config import UrlSource, load_params
from pipelines.stages.download import run

PRESETS = Path(__file__).parents[1] / "presets"
LINES = {
    "multi30k-en-de": ("multi30k", {"train": 29_000, "valid": 1_014, "test": 1_000}),
    "tatoeba-en-de": ("tatoeba-en-de", {"train": 158_900, "valid": 1_917, "test": 2_628}),
}


@pytest.mark.parametrize("preset", sorted(PRESETS.glob("*.yaml")), ids=lambda path: path.stem)
def test_preset_is_valid(preset: Path) -> None:
    """`cp presets/X.yaml params.yaml` must work as it stands; the model card bears its name."""
    params = load_params(preset)
    assert params.package.name.startswith(preset.stem) or preset.stem == "generated"
    assert params.model_dump(), "a preset has values"


def test_the_four_presets_are_there() -> None:
    """The README names them."""
    names = {path.stem for path in PRESETS.glob("*.yaml")}
    assert names >= {"generated", "multi30k-en-de", "tatoeba-en-de", "own-data"}


@pytest.mark.parametrize("preset", LINES)
def test_local_files_of_a_corpus_are_found(
    preset: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With download.folder set to a folder with these files, no network is asked, and all lines arrive."""

    def no_network(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("convs2s.text.sources.fetch.from_mirrors", no_network)
    folder, lines = LINES[preset]
    params = load_params(PRESETS / f"{preset}.yaml").download
    params = params.model_copy(update={"folder": str(shared_data / folder)})
    for split in ("valid", "test", "train"):
        run(params, split, tmp_path / "downloads", tmp_path / split)
        for side in ("source.txt", "target.txt"):
            assert (tmp_path / split / side).read_bytes().count(b"\n") == lines[split]
        assert json.loads((tmp_path / split / "provenance.json").read_text())["lines"] == lines[split]
    first = (tmp_path / "test" / "source.txt").open(encoding="utf-8").readline()
    assert first.isascii(), "English is the source"


def test_mirrors_of_multi30k_are_the_same_files() -> None:
    """Of one repository and commit, each by name the file that the split reads."""
    download = load_params(PRESETS / "multi30k-en-de.yaml").download
    for split in ("train", "valid", "test"):
        (source,) = download.sources(split)
        assert isinstance(source, UrlSource)
        for file, name in zip(source.fetch, (source.source, source.target), strict=True):
            assert len(file.urls) == 2
            tail = f"a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/{name}"
            assert all(url.endswith(tail) for url in file.urls)
