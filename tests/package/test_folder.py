"""The model folder for users: its contents, and the errors if some are missing."""

import json
from pathlib import Path

import pytest

from convs2s.model.description import seal
from convs2s.package.folder import Settings, read_settings, write_package
from convs2s.package.translator import load
from tests.decode.parrot import PACKAGED, TOKENIZE
from tests.package.small_package import write_parts, write_small_package


def test_a_folder_has_everything_that_translation_needs(tmp_path: Path) -> None:
    """Users copy only this folder, so it must have all these files, and no others."""
    package = write_small_package(tmp_path, replace=True)
    assert read_settings(package) == Settings(("en", "de"), TOKENIZE, PACKAGED, replace=True)
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
    settings = Settings(("en", "de"), TOKENIZE, PACKAGED, replace=False)
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
    tokenize = TOKENIZE.model_copy(update={"truecase": True})
    package = tmp_path / "package"
    settings = Settings(("en", "de"), tokenize, PACKAGED, replace=False)
    write_package(package, *write_parts(tmp_path), settings, "card", tmp_path)
    assert (package / "truecaser.tsv").read_text(encoding="utf-8") == "aus\t3\n"
    translator = load(package, "cpu")
    assert translator.source.tokenize("Aus Haus") == ["aus", "Haus"]
    assert translator.target.tokenize("maus Aus") == ["Maus", "Aus"]
    assert translator.target.detokenize(["aus", "."]) == "Aus."
    (package / "truecaser.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks truecaser\.tsv, which its model\.json names"):
        load(package, "cpu")


TRANSLATION = json.dumps(PACKAGED.model_dump())
TOKENIZATION = json.dumps(TOKENIZE.model_dump())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", "{", "is not JSON: "),
        ("tokenizer.json", "[]", "expected a JSON object, found list"),
        ("tokenizer.json", "[" * 100_000 + "]" * 100_000, "is not JSON: "),
        (
            "tokenizer.json",
            f'{{"target_language": "de", "tokenize": {TOKENIZATION}}}',
            "source_language: missing",
        ),
        (
            "tokenizer.json",
            f'{{"source_language": "e\\u001b[2J", "target_language": "de", "tokenize": {TOKENIZATION}}}',
            "source_language: expected ASCII characters without spaces",
        ),
        (
            "translate.json",
            '{"replace": true, "translate": {"beam": 3}}',
            r" translate\.beam: .* beam_size\?",
        ),
        ("translate.json", f'{{"translate": {TRANSLATION}}}', "replace: missing"),
        (
            "translate.json",
            f'{{"replace": "false", "translate": {TRANSLATION}}}',
            "replace: expected true or false",
        ),
        (
            "translate.json",
            f'{{"replace": 0, "translate": {TRANSLATION}}}',
            "replace: expected true or false",
        ),
        (
            "translate.json",
            f'{{"replace": true, "more": 1, "translate": {TRANSLATION}}}',
            "more: unknown key",
        ),
        (
            "translate.json",
            f'{{"replace": true, "replace": false, "translate": {TRANSLATION}}}',
            "expected each name once, found 'replace' twice",
        ),
        ("facts.json", "{}", "does not describe a model:\n.*name: missing"),
        ("facts.json", "[" * 100_000, "is not JSON"),
        ("facts.json", '{"color": 1}', "color: unknown key, found 1"),
        ("source.tsv", "a\t" + "9" * 5000 + "\n", "line 1: expected 'entry TAB count'"),
        ("dictionary.tsv", "source\ttarget\tcount\tlinks\na\tb\tx\t1\n", "line 2: expected four .* numbers"),
        ("segmentation.json", '{"kind": ["bpe"]}', r"expected a kind of .*, found \['bpe'\]"),
    ],
)
def test_damaged_settings_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    """The error names the file and what it should contain; the schema is that of params.yaml."""
    package = write_small_package(tmp_path, replace=True)
    (package / name).write_text(content, encoding="utf-8")
    seal(package)
    with pytest.raises(ValueError, match=rf"(?s){name}.*{message}"):
        load(package, "cpu")


def test_a_file_that_was_added_is_refused(tmp_path: Path) -> None:
    """Candidates, for instance, would change translations; what nothing reads may be there."""
    package = write_small_package(tmp_path)
    (package / ".gitattributes").touch()
    (package / "LICENSE").touch()
    load(package, "cpu")
    (package / "candidates.npz").touch()
    with pytest.raises(ValueError, match=r"package has candidates\.npz, which its model\.json does not name"):
        load(package, "cpu")
