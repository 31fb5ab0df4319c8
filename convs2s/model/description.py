"""model.json: the architecture and sizes needed to rebuild a model, and digests of its folder's files.

It has the SHA-256 of every other file under `files`, and that of its own content, without the digest itself,
under `sha256`, so that damage is found before anything is used.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from convs2s.base.files import read_json
from convs2s.config.faults import validate
from convs2s.config.model import ModelParams
from convs2s.config.section import Section

DESCRIPTION, WEIGHTS, CARD = "model.json", "weights.safetensors", "README.md"

VocabularySize = Annotated[int, Field(ge=1, lt=2**31)]


class Description(Section):
    """The content of a model.json."""

    architecture: ModelParams
    source_size: VocabularySize
    """Entries of the source vocabulary, special ones included."""
    target_size: VocabularySize
    """The same for the target."""
    padding_id: Annotated[int, Field(ge=0)]
    """In both vocabularies."""
    files: dict[str, str]
    """SHA-256 of each file in the folder but model.json and the card."""
    sha256: str
    """SHA-256 of the rest of model.json."""


def read_description(folder: Path) -> Description:
    """Read the model.json of a folder."""
    path = folder / DESCRIPTION
    content = read_json(path)
    if (digest := digest_of_content(content)) != content.get("sha256"):
        raise ValueError(describe_change(path, digest, content.get("sha256")))
    return validate(Description, content, f"{path} does not describe a model; make or fetch it again")


def seal(folder: Path) -> None:
    """Write the digests of all files of a model folder to its model.json.

    README.md has none: people edit model cards.
    """
    description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    covered = sorted(path for path in folder.iterdir() if path.name not in (DESCRIPTION, CARD))
    description["files"] = {path.name: digest_of_file(path) for path in covered}
    description["sha256"] = digest_of_content(description)
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def check_files(folder: Path, digests: Mapping[str, str], names: Iterable[str] | None = None) -> None:
    """Check files of a model folder, by default all but the weights, by the digests of its model.json."""
    for name in sorted(digests.keys() - {WEIGHTS} if names is None else digests.keys() & set(names)):
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} lacks {name}, which its model.json names. Fetch or package the whole folder again."
            )
        if (digest := digest_of_file(path)) != digests[name]:
            raise ValueError(describe_change(path, digest, digests[name]))


def describe_change(path: Path, digest: str, expected: object) -> str:
    """Return the message for a file that has changed since it was written."""
    return (
        f"{path} has changed since it was written: its SHA-256 is {digest[:16]}..., but model.json has "
        f"{str(expected)[:16]}.... Is the copy damaged, or was the file edited? Fetch or package the folder "
        "again; to change search settings, use options of convs2s translate or arguments of convs2s.load."
    )


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of_content(description: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a model.json's values, whatever their layout, without the key `sha256`."""
    content = {key: value for key, value in description.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
