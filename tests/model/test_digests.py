"""Digests of a model folder: damage to any file is detected."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convs2s.model.description import digest_of_content, seal
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


def reseal(content: dict[str, Any], **changes: object) -> dict[str, Any]:
    """Return a changed model.json with the right digest of its content."""
    changed = content | changes
    return changed | {"sha256": digest_of_content(changed)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.pop("files") and content, "has changed since it was written"),
        (lambda content: content.pop("sha256") and content, "has changed since it was written"),
        # An untrusted model.json with a valid digest cannot name files elsewhere.
        (lambda content: reseal(content, files={"../secret": "0"}), r"files\.\.\./secret.*expected"),
    ],
)
def test_a_changed_model_json_is_refused(
    package: Path, change: Callable[[dict[str, Any]], dict[str, Any]], message: str
) -> None:
    """No part of the digests can be missing: damage to the key itself would disable the check."""
    path = package / "model.json"
    path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load(package, "cpu")


def test_a_file_with_a_digest_cannot_be_missing(package: Path) -> None:
    """An optional one, such as the truecaser, is no longer optional once the folder has it."""
    (package / "more.tsv").write_text("x", encoding="utf-8")
    seal(package)
    (package / "more.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks more\.tsv, which its model\.json names"):
        load(package, "cpu")
