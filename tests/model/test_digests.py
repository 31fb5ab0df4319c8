"""Digests of a model folder: damage to any file is detected."""

from pathlib import Path

import pytest

from convs2s.model.description import seal
from convs2s.package.translator import load
from tests.package.small_package import write_small_package


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_small_package(tmp_path)


def test_every_flipped_bit_is_found(package: Path) -> None:
    """In any file except the model card, at twelve positions from first to last."""
    load(package, "cpu")
    for path in sorted(package.iterdir()):
        whole, bits = path.read_bytes(), 8 * path.stat().st_size
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
    """Another number could give wrong translations."""
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
