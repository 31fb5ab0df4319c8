"""The model folder for users: its contents, and the errors if some are missing."""

import json
from pathlib import Path

import pytest

from convs2s.package.folder import Settings, read_settings, write_package
from convs2s.package.translator import load
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import without_digests, write_parts, write_small_package


def test_a_folder_has_everything_that_translation_needs(tmp_path: Path) -> None:
    """Users copy only this folder, so it must have all these files, and no others."""
    package = write_small_package(tmp_path)
    assert {path.name for path in package.iterdir()} == {
        "README.md", "model.json", "weights.safetensors", "source.tsv", "target.tsv", "source.model",
        "target.model", "segmentation.json", "tokenizer.json", "translate.json", "dictionary.tsv",
    }  # fmt: skip


def test_settings_round_trip(tmp_path: Path) -> None:
    """Every setting must survive."""
    package = write_small_package(tmp_path, replace=True)
    assert read_settings(package) == Settings(("en", "de"), TOKENIZE, TRANSLATE, replace=True)


def test_folders_without_later_keys_still_load(tmp_path: Path) -> None:
    """A user's model outlives versions; these date from before vocabulary selection and truecasing."""
    package = without_digests(write_small_package(tmp_path))
    for name, section, keys in (
        ("translate.json", "translate", ["selection"]),
        ("tokenizer.json", "tokenize", ["truecase", "at_sign"]),
    ):
        content = json.loads((package / name).read_text(encoding="utf-8"))
        for key in keys:
            del content[section][key]
        (package / name).write_text(json.dumps(content), encoding="utf-8")
    assert read_settings(package) == Settings(("en", "de"), TOKENIZE, TRANSLATE, replace=False)


def test_the_same_parts_give_the_same_bytes(tmp_path: Path) -> None:
    """DVC hashes the folder, so it must not contain a date or a path."""
    one, other = write_small_package(tmp_path / "1"), write_small_package(tmp_path / "2")
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes()


def test_a_missing_part_leaves_the_old_folder(tmp_path: Path) -> None:
    """The old folder still works, so a failure must not destroy it."""
    package = write_small_package(tmp_path)
    model, vocabulary, dictionary, candidates = write_parts(tmp_path)
    dictionary.unlink()
    settings = Settings(("en", "de"), TOKENIZE, TRANSLATE, replace=False)
    with pytest.raises(FileNotFoundError, match=r"dictionary.tsv does not exist; a model folder needs it"):
        write_package(package, model, vocabulary, dictionary, candidates, settings, "new card")
    assert (package / "README.md").read_text(encoding="utf-8") == "# card\n"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def truecased_package(folder: Path) -> Path:
    """Write a truecased model's folder; its truecasers know "aus" (source) and "Maus" (target)."""
    cases = folder / "truecasers"
    cases.mkdir(exist_ok=True)
    (cases / "source.tsv").write_text("aus\t3\n", encoding="utf-8")
    (cases / "target.tsv").write_text("Maus\t3\n", encoding="utf-8")
    tokenize = TOKENIZE.model_copy(update={"truecase": True})
    settings = Settings(("en", "de"), tokenize, TRANSLATE, replace=False)
    write_package(folder / "package", *write_parts(folder), settings, "card", cases)
    return folder / "package"


def test_a_truecased_model_includes_its_truecasers(tmp_path: Path) -> None:
    """The model must truecase the first word of a source and capitalize that of a translation."""
    package = truecased_package(tmp_path)
    assert (package / "truecaser.tsv").read_text(encoding="utf-8") == "aus\t3\n"
    translator = load(package, "cpu")
    assert translator.source.tokenize("Aus Haus") == ["aus", "Haus"]
    assert translator.target.tokenize("maus Aus") == ["Maus", "Aus"]
    assert translator.target.detokenize(["aus", "."]) == "Aus."


def test_an_older_truecased_folder_still_translates(tmp_path: Path) -> None:
    """Only given translations need the target side's truecaser, which is missing; the error says so."""
    package = without_digests(truecased_package(tmp_path))
    (package / "truecaser.target.tsv").unlink()
    translator = load(package, "cpu")
    translator.translate("Aus Haus")
    with pytest.raises(ValueError, match="its folder has no truecaser of the target side"):
        translator.score("ein Haus.", "Ein Haus.")
    with pytest.raises(ValueError, match="its folder has no truecaser of the target side"):
        translator.translate("ein Haus.", prefixes="Ein")


def test_a_truecased_model_without_truecaser_is_refused(tmp_path: Path) -> None:
    """Such a model could not process text, so both writing and reading it must fail."""
    package = truecased_package(tmp_path)
    (tmp_path / "truecasers" / "target.tsv").unlink()
    settings, parts = read_settings(package), write_parts(tmp_path / "more")
    with pytest.raises(FileNotFoundError, match=r"target\.tsv does not exist; a model folder needs it"):
        write_package(package, *parts, settings, "card", tmp_path / "truecasers")
    (without_digests(package) / "truecaser.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks truecaser\.tsv, though its tokenizer\.json says"):
        read_settings(package)


def test_folders_from_before_truecasing_are_read(tmp_path: Path) -> None:
    """A step that their settings do not name was not applied to their training text."""
    package = without_digests(write_small_package(tmp_path))
    path = package / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    old = ("tokenizer", "normalize_punctuation", "remove_nonprinting", "aggressive_hyphens", "escape")
    content["tokenize"] = {key: content["tokenize"][key] for key in old}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert read_settings(package).tokenize == TOKENIZE


@pytest.mark.fault("input")
def test_missing_folder_and_files_are_named(tmp_path: Path) -> None:
    """All missing files are listed at once; giving data/trained is a likely slip."""
    with pytest.raises(FileNotFoundError, match=r"nowhere is not a folder. Wanted a model folder"):
        read_settings(tmp_path / "nowhere")
    package = write_small_package(tmp_path)
    (package / "source.tsv").unlink()
    (package / "translate.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks source.tsv, translate.json. Wanted a model folder"):
        read_settings(package)


@pytest.mark.fault("input")
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", "{", r"tokenizer.json is not JSON: "),
        ("translate.json", "[" * 100_000, r"translate.json is not JSON: maximum recursion depth exceeded"),
        ("tokenizer.json", "[]", r"tokenizer.json holds a list; wanted a JSON object"),
        (
            "tokenizer.json",
            "{}",
            r"tokenizer.json has the languages \(None, None\); wanted source_language and",
        ),
        (
            "tokenizer.json",
            '{"source_language": "\\u001b[2J", "target_language": "de"}',
            r"tokenizer.json has the languages \('\\x1b\[2J', 'de'\); wanted source_language and",
        ),
        ("translate.json", '{"replace": 1}', r"translate.json has replace 1; wanted true or false"),
        ("translate.json", '{"replace": true, "translate": {}}', r"translate.json: beam_size: missing"),
        (
            "translate.json",
            '{"replace": true, "translate": {"beam": 3, "selection": {"commmon": 1}}}',
            r"selection\.commmon: unknown key, found 1; did you mean common\?.* beam: .* mean beam_size\?",
        ),
    ],
)
def test_damaged_settings_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    """The error names the file and what it should contain."""
    package = without_digests(write_small_package(tmp_path))
    (package / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_settings(package)


@pytest.mark.fault("input")
def test_ill_typed_values_are_named(tmp_path: Path) -> None:
    """The schema that checks params.yaml also checks a folder's settings."""
    package = without_digests(write_small_package(tmp_path))
    content = json.loads((package / "translate.json").read_text(encoding="utf-8"))
    content["translate"]["alpha"] = "one"
    (package / "translate.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"translate.json: alpha: found 'one', wanted a number"):
        read_settings(package)
