"""Single values of params.yaml, with their keys, for stages that do not need the whole section."""

from typing import Annotated

Languages = Annotated[tuple[str, str], "download.source_language", "download.target_language"]
"""Source and target language, as ISO 639 codes."""
Seeds = Annotated[list[int], "train.seeds"]
Replacement = Annotated[bool, "replace.enabled"]
"""Whether unknown words are replaced."""
StartFrom = Annotated[str | None, "train.start_from"]
"""Model folder that training starts from."""
