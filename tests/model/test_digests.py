"""Digests of a model folder: damage to any file is detected."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.model.description import digest_of_content, digest_of_file, seal
from convs2s.model.storage import load_model
from convs2s.package.translator import load
from tests.package.small_package import write_small_package


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_small_package(tmp_path)


def test_every_flipped_bit_is_found(package: Path) -> None:
    """A damaged weight would give wrong translations. Only the model card, which people edit, may change."""
    load(package, "cpu")
    for path in sorted(package.iterdir()):
        whole = path.read_bytes()
        bits = 8 * path.stat().st_size
        for bit in [*range(0, bits, bits // 11 + 1), bits - 1]:
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            if path.name == "README.md":
                load(package, "cpu")
            else:
                with pytest.raises(ValueError, match=path.name):
                    load(package, "cpu")
            path.write_bytes(whole)


def test_an_edited_model_json_is_refused(package: Path) -> None:
    """A changed number in it, such as the padding's id, could give wrong translations without an error."""
    path = package / "model.json"
    path.write_text(path.read_text().replace('"padding_id": 0', '"padding_id": 1'))
    with pytest.raises(ValueError, match=r"model\.json has changed since it was written"):
        load(package, "cpu")


def test_a_file_with_a_digest_cannot_be_missing(package: Path) -> None:
    """An optional one, such as the truecaser, is no longer optional once the folder has it."""
    (package / "more.tsv").write_text("x", encoding="utf-8")
    seal(package)
    (package / "more.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks more\.tsv, which its model\.json names"):
        load(package, "cpu")


def edit_description(package: Path, **changes: Any) -> Path:
    """Change values of model.json, with the digest that fits; return the folder."""
    path = package / "model.json"
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(content | {"sha256": digest_of_content(content)}), encoding="utf-8")
    return package


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "a/b", "..", ".", "", "a\\b", "\x1b[2J", "\ud800"]
)
def test_model_json_names_only_files_of_its_folder(package: Path, name: str) -> None:
    """With a path in it, a stranger's model.json would say what is in a file of ours."""
    (package.parent / "secret").write_text("secret", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"model\.json does not describe .*\n.*plain name of a file"
    ) as raised:
        load(edit_description(package, files={name: "0" * 64}), "cpu")
    assert digest_of_file(package.parent / "secret")[:8] not in str(raised.value)


def test_a_link_shows_no_digest_of_what_it_points_to(package: Path) -> None:
    """DVC and the Hub make links, so they are followed, but only what was sealed passes."""
    secret = package.parent / "secret"
    secret.write_text("secret", encoding="utf-8")
    (package / "dictionary.tsv").rename(package.parent / "dictionary.tsv")
    (package / "dictionary.tsv").symlink_to(package.parent / "dictionary.tsv")
    load(package, "cpu")
    (package / "dictionary.tsv").unlink()
    (package / "dictionary.tsv").symlink_to(secret)
    with pytest.raises(ValueError, match=r"dictionary\.tsv has changed") as raised:
        load(package, "cpu")
    assert digest_of_file(secret)[:8] not in str(raised.value)


@pytest.mark.parametrize("name", ["weights.safetensors", "translate.json", "dictionary.tsv"])
def test_a_file_without_a_digest_is_refused(package: Path, name: str) -> None:
    """Otherwise a model.json could leave out what it has a reason to."""
    files = json.loads((package / "model.json").read_text(encoding="utf-8"))["files"]
    with pytest.raises(ValueError, match=rf"{name}"):
        load(edit_description(package, files={key: files[key] for key in files if key != name}), "cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"padding_id": 99}, "expected a padding_id below 29, the entries, found 99"),
        ({"padding_id": True}, "padding_id: expected an integer, found true"),
        ({"source_size": 0}, "source_size: expected greater than or equal to 1, found 0"),
        ({"target_size": "29"}, "target_size: expected an integer, found '29'"),
        ({"target_size": 29.0}, r"target_size: expected an integer, found 29\.0"),
        ({"target_size": 10**30}, "target_size: expected less than 2147483648"),
        ({"files": ["a"]}, "files: expected .*dictionary, found"),
        ({"files": {"a": "0"}}, "files.a: expected a SHA-256 of 64 digits"),
        ({"architecture": "text"}, "architecture: expected a dictionary.*, found 'text'"),
    ],
)
def test_impossible_numbers_are_refused(package: Path, changes: dict[str, Any], message: str) -> None:
    """They would be an error of PyTorch, or worse, none."""
    with pytest.raises(ValueError, match=rf"model\.json does not describe a model.*\n.*{message}"):
        load_model(edit_description(package, **changes))


def test_padding_is_that_of_the_vocabularies(package: Path) -> None:
    """With another id, real words would be taken for padding: wrong translations without an error."""
    with pytest.raises(ValueError, match=r"model\.json: expected padding_id 0, .*, found 1"):
        load(edit_description(package, padding_id=1), "cpu")
