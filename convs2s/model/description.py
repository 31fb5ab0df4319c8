"""model.json: the architecture and sizes needed to rebuild a model, and digests of its folder's files."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from convs2s.config.faults import validate
from convs2s.config.model import ModelParams
from convs2s.config.section import Section
from convs2s.model.digests import DESCRIPTION, check_own_digest

VocabularySize = Annotated[int, Field(ge=1, lt=2**31)]


FileName = Annotated[str, Field(pattern=r"^[^/\\]+$")]


class Description(Section):
    """The content of a model.json."""

    architecture: ModelParams
    source_size: VocabularySize
    """Entries of the source vocabulary, special ones included."""
    target_size: VocabularySize
    """The same for the target."""
    padding_id: Annotated[int, Field(ge=0)]
    """In both vocabularies."""
    files: dict[FileName, str]
    """SHA-256 of each file in the folder but model.json and the card."""
    sha256: str
    """SHA-256 of the rest of model.json."""

    @model_validator(mode="after")
    def _padding_exists(self) -> "Description":
        smaller = min(self.source_size, self.target_size)
        if self.padding_id >= smaller:
            raise ValueError(f"padding_id: expected an id below {smaller}, found {self.padding_id}")
        return self


def read_description(folder: Path) -> Description:
    """Read the model.json of a folder.

    Raises:
        ValueError: if it is damaged or has impossible values; the message lists every fault.
    """
    path = folder / DESCRIPTION
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        check_own_digest(content, path)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} does not describe a model: {error!r}. Make or fetch it again.") from error
    return validate(Description, content, f"{path} does not describe a model; make or fetch it again")
