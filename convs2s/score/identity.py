"""The identity of a test set: name, lines and hash, without which scores cannot be compared (T30)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from convs2s.base.files import further_references, read_folder, read_json, read_lines
from convs2s.base.messages import inflect


@dataclass(frozen=True)
class SetIdentity:
    """The identity of a test set."""

    name: str
    """As in params.yaml: files, or a sacreBLEU name."""
    lines: int
    sha256: str
    """Of all pairs as 'source TAB target LF' lines; additional references follow, each after a tab."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read test_set.json, as written by the stage evaluate; with other content, it is a ValueError."""
        content = read_json(path)
        if {key: type(value) for key, value in content.items()} != {"name": str, "lines": int, "sha256": str}:
            raise ValueError(
                f"{path}: expected name, lines and sha256, found {content}. Run: dvc repro evaluate"
            )
        return cls(**content)

    def __str__(self) -> str:
        """Return one human-readable line."""
        return f"{self.name}: {inflect(self.lines, 'line')}, sha256 {self.sha256}"


def identify(folder: Path) -> SetIdentity:
    """Return the identity of a split written by the stage download."""
    lines, digest = 0, hashlib.sha256()
    further = [list(read_lines(path)) for path in further_references(folder)]
    for pair, *references in zip(read_folder(folder), *further, strict=True):
        digest.update(("\t".join([*pair, *references]) + "\n").encode())
        lines += 1
    content = read_json(folder / "provenance.json")
    sources = ", ".join(map(name_source, content["sources"]))
    name = " and ".join([sources, *(file["name"] for file in content.get("references", []))])
    return SetIdentity(name, lines, digest.hexdigest())


def name_source(source: Mapping[str, Any]) -> str:
    """Return the name of one source: that of sacreBLEU, or those of its files."""
    return str(source.get("name") or " and ".join(file["name"] for file in source["files"]))
