"""model.json: the architecture and sizes needed to rebuild a model, and digests of its folder's files.

It has the SHA-256 of every other file under `files`, and that of its own content, without the digest itself,
under `sha256`, so that damage is found before anything is used.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from convs2s.base.files import read_json
from convs2s.config.download import SHA256
from convs2s.config.faults import validate
from convs2s.config.format import BEFORE, FORMAT, check_format, newest
from convs2s.config.model import ModelParams
from convs2s.config.section import VERSION, Section

DESCRIPTION, WEIGHTS, CARD = "model.json", "weights.safetensors", "README.md"

VocabularySize = Annotated[int, Field(ge=1, lt=2**31)]
Digest = Annotated[str, Field(pattern=SHA256)]


def refuse_path(name: str) -> str:
    """Reject a name that may lead out of the folder, or that cannot be shown as it is."""
    if name in ("", ".", "..") or set(name) & set("/\\") or not name.isprintable():
        raise ValueError(f"expected the plain name of a file in the folder, found {name!r}")
    return name


FileName = Annotated[str, AfterValidator(refuse_path)]


class Description(Section):
    """The content of a model.json."""

    format: Annotated[str, Field(pattern=VERSION)] = BEFORE
    """The first version of convs2s that reads this folder."""
    architecture: ModelParams
    source_size: VocabularySize
    """Entries of the source vocabulary, special ones included."""
    target_size: VocabularySize
    """The same for the target."""
    padding_id: Annotated[int, Field(ge=0)]
    """In both vocabularies."""
    files: dict[FileName, Digest]
    """SHA-256 of each file in the folder but model.json and the card."""
    sha256: Digest
    """SHA-256 of the rest of model.json."""

    @model_validator(mode="after")
    def _padding_is_an_entry(self) -> "Description":
        if self.padding_id >= (size := min(self.source_size, self.target_size)):
            raise ValueError(f"expected a padding_id below {size:,}, the entries, found {self.padding_id}")
        return self


def read_description(folder: Path) -> Description:
    """Read the model.json of a folder; a NewerFormatError if only later versions of convs2s can read it."""
    path = folder / DESCRIPTION
    content = read_json(path)
    check_format(content.get("format"), path)  # first: what follows may have changed
    if digest_of_content(content) != content.get("sha256"):
        raise ValueError(describe_change(path))
    return validate(Description, content, f"{path} does not describe a model; make or fetch it again")


def seal(folder: Path, form: str = FORMAT) -> None:
    """Write the digests of all files of a model folder to its model.json, and the format if it is newer.

    README.md has none: people edit model cards.
    """
    description = {"format": form} | json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    description["format"] = newest([form, description["format"]])
    covered = sorted(path for path in folder.iterdir() if path.name not in (DESCRIPTION, CARD))
    description["files"] = {path.name: digest_of_file(path) for path in covered}
    description["sha256"] = digest_of_content(description)
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def check_files(folder: Path, digests: Mapping[str, str], names: Iterable[str]) -> None:
    """Check these files of a model folder by the digests of its model.json.

    A file may be a link, as DVC and the Hugging Face Hub make them, so messages do not show its digest: only
    the files of a folder that was sealed with them can pass.
    """
    for name in sorted(names):
        path = folder / name
        if name not in digests:
            raise ValueError(
                f"{folder / DESCRIPTION}: expected the SHA-256 of {name}, found none. Fetch or package the "
                "whole folder again."
            )
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} lacks {name}, which its model.json names. Fetch or package the whole folder again."
            )
        if digest_of_file(path) != digests[name]:
            raise ValueError(describe_change(path))


def describe_change(path: Path) -> str:
    """Return the message for a file that has changed since it was written."""
    return (
        f"{path} has changed since it was written: its SHA-256 is not the one in model.json. Is the copy "
        "damaged, or was the file edited? Fetch or package the folder again; to change search settings, use "
        "options of convs2s translate or arguments of convs2s.load."
    )


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of_content(description: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a model.json's values, whatever their layout, without the key `sha256`."""
    content = {key: value for key, value in description.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def receptive_field(kernel_widths: Sequence[int]) -> int:
    """Return the number of inputs that each output of the stacked layers depends on (§3.2, §5.4)."""
    return 1 + sum(width - 1 for width in kernel_widths)
