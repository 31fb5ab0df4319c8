"""Digests of a model folder: damage to any file is detected."""

import json
from pathlib import Path

import pytest

from convs2s.model.description import digest_of_content, seal
from convs2s.package.folder import Settings, write_package
from convs2s.package.translator import load
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import write_small_package


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_small_package(tmp_path)


def flip(path: Path, bit: int) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_every_flipped_bit_is_found(package: Path) -> None:
    """In any file except the model card, at twelve positions from first to last."""
    load(package, "cpu")
    for path in sorted(package.iterdir()):
        whole, bits = path.read_bytes(), 8 * path.stat().st_size
        for bit in [*range(0, bits, bits // 11 + 1), bits - 1]:
            flip(path, bit)
            if path.name == "README.md":
                load(package, "cpu")
            else:
                with pytest.raises(ValueError, match=path.name):
                    load(package, "cpu")
            path.write_bytes(whole)


@pytest.mark.parametrize("key", ["files", "sha256"])
def test_no_part_of_the_digests_can_be_missing(package: Path, key: str) -> None:
    """Otherwise, damage to the key itself would disable the check."""
    content = json.loads((package / "model.json").read_text(encoding="utf-8"))
    del content[key]
    (package / "model.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"model\.json has changed since it was written"):
        load(package, "cpu")


def test_a_file_with_a_digest_cannot_be_missing(package: Path) -> None:
    """An optional one, such as the truecaser, is no longer optional once the folder has it."""
    (package / "more.tsv").write_text("x", encoding="utf-8")
    seal(package)
    (package / "more.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks more\.tsv, which its model\.json names"):
        load(package, "cpu")


def test_damage_is_not_packaged(tmp_path: Path) -> None:
    """A package would give the damaged weights a valid digest."""
    write_small_package(tmp_path)
    flip(tmp_path / "model" / "weights.safetensors", 8 * 2000)
    with pytest.raises(ValueError, match=r"model/weights\.safetensors has changed since it was written"):
        write_small_package_again(tmp_path)


def write_small_package_again(folder: Path) -> None:
    """Package the parts that are in a folder."""
    settings = Settings(("en", "de"), TOKENIZE, TRANSLATE, replace=False)
    dictionary = folder / "alignment" / "dictionary.tsv"
    write_package(
        folder / "again", folder / "model", folder / "vocabulary", dictionary, None, settings, "card"
    )


def test_another_padding_id_is_refused(package: Path) -> None:
    """It would load, but truncate every sentence with that id."""
    content = json.loads((package / "model.json").read_text(encoding="utf-8"))
    (package / "model.json").write_text(json.dumps({**content, "padding_id": 5}), encoding="utf-8")
    seal(package)
    with pytest.raises(ValueError, match=r"expected the padding id 0 of its vocabulary, found 5"):
        load(package, "cpu")


def test_only_files_of_the_folder_are_read(package: Path) -> None:
    """An untrusted model.json with a valid digest cannot name files elsewhere."""
    content = json.loads((package / "model.json").read_text(encoding="utf-8"))
    content["files"] = {"../secret": "0"}
    content["sha256"] = digest_of_content(content)
    (package / "model.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"files\.\.\./secret.*expected .*, found '../secret'"):
        load(package, "cpu")
