"""The identity of a test set: name, lines and hash, without which scores cannot be compared (T30)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convs2s.base.files import further_references, read_folder, read_json, read_lines
from convs2s.base.messages import inflect


@dataclass(frozen=True)
class SetIdentity:
    """The identity of a test set, as in test_set.json of the stage evaluate."""

    name: str
    """As in params.yaml: files, or a sacreBLEU name."""
    lines: int
    sha256: str
    """Of all pairs as 'source TAB target LF' lines; additional references follow, each after a tab."""

    def __str__(self) -> str:
        """Return one human-readable line."""
        return f"{self.name}: {inflect(self.lines, 'line')}, sha256 {self.sha256}"


def identify(folder: Path) -> SetIdentity:
    """Return the identity of a split written by the stage download."""
    lines = 0
    digest = hashlib.sha256()
    further = [list(read_lines(path)) for path in further_references(folder)]
    for pair, *references in zip(read_folder(folder), *further, strict=True):
        digest.update(("\t".join([*pair, *references]) + "\n").encode())
        lines += 1
    provenance = read_json(folder / "provenance.json")
    sources = ", ".join(name_source(source) for source in provenance["sources"])
    further_names = [file["name"] for file in provenance.get("references", [])]
    return SetIdentity(" and ".join([sources, *further_names]), lines, digest.hexdigest())


def name_source(source: Mapping[str, Any]) -> str:
    """Return the name of a test set of sacreBLEU, or the names of the files that pairs come from."""
    if "name" in source:
        return str(source["name"])
    return " and ".join(file["name"] for file in source["files"])
