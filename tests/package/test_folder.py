"""The model folder for users: its contents, and the errors if some are missing."""

from pathlib import Path

import pytest

from convs2s.model.description import seal
from convs2s.package.folder import Settings, read_settings, write_package
from convs2s.package.translator import load
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import write_parts, write_small_package


def test_a_folder_has_everything_that_translation_needs(tmp_path: Path) -> None:
    """Users copy only this folder, so it must have all these files, and no others."""
    package = write_small_package(tmp_path, replace=True)
    assert read_settings(package) == Settings(("en", "de"), TOKENIZE, TRANSLATE, replace=True)
    assert load(package, "cpu").dictionary == {"dog": "Hund"}
    assert load(package, "cpu", replace=False).dictionary is None
    assert {path.name for path in package.iterdir()} == {
        "README.md", "model.json", "weights.safetensors", "source.tsv", "target.tsv", "source.model",
        "target.model", "segmentation.json", "tokenizer.json", "translate.json", "dictionary.tsv",
        "facts.json",
    }  # fmt: skip


def test_only_a_whole_folder_replaces_the_old_one(tmp_path: Path) -> None:
    """A failure leaves the old one, which works; unfinished files of a killed DVC, hidden, stay out."""
    package = write_small_package(tmp_path)
    model, vocabulary, *_ = parts = write_parts(tmp_path)
    (vocabulary / ".abc.tmp").touch()
    settings = Settings(("en", "de"), TOKENIZE, TRANSLATE, replace=False)
    weights = (model / "weights.safetensors").read_bytes()
    (model / "weights.safetensors").write_bytes(weights[:-1] + b"?")
    with pytest.raises(ValueError, match=r"weights.safetensors has changed"):
        write_package(package, *parts, settings, "new")
    (model / "weights.safetensors").write_bytes(weights)
    assert (package / "README.md").read_text(encoding="utf-8") == "# card\n"
    write_package(package, *parts, settings, "new")
    assert (package / "README.md").read_text(encoding="utf-8") == "new"
    assert not list(package.glob(".*"))


def test_a_truecased_model_includes_its_truecasers(tmp_path: Path) -> None:
    """The model must truecase the first word of a source and capitalize that of a translation."""
    (tmp_path / "source.tsv").write_text("aus\t3\n", encoding="utf-8")
    (tmp_path / "target.tsv").write_text("Maus\t3\n", encoding="utf-8")
    tokenize, package = TOKENIZE.model_copy(update={"truecase": True}), tmp_path / "package"
    settings = Settings(("en", "de"), tokenize, TRANSLATE, replace=False)
    write_package(package, *write_parts(tmp_path), settings, "card", tmp_path)
    assert (package / "truecaser.tsv").read_text(encoding="utf-8") == "aus\t3\n"
    translator = load(package, "cpu")
    assert translator.source.tokenize("Aus Haus") == ["aus", "Haus"]
    assert translator.target.tokenize("maus Aus") == ["Maus", "Aus"]
    assert translator.target.detokenize(["aus", "."]) == "Aus."
    (package / "truecaser.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks truecaser\.tsv, which its model\.json names"):
        load(package, "cpu")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", "{", r"tokenizer.json is not JSON: "),
        ("translate.json", '{"replace": true, "translate": {"beam": 3}}', r" beam: .* beam_size\?"),
    ],
)
def test_damaged_settings_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    """The error names the file and what it should contain; the schema is that of params.yaml."""
    package = write_small_package(tmp_path)
    (package / name).write_text(content, encoding="utf-8")
    seal(package)
    with pytest.raises(ValueError, match=message):
        read_settings(package)
