"""Single values of params.yaml that a stage takes instead of a whole section, with their keys."""

from typing import Annotated

Languages = Annotated[tuple[str, str], "download.source_language", "download.target_language"]
"""Source and target language, as ISO 639 codes."""
Seeds = Annotated[list[int], "train.seeds"]
Replacement = Annotated[bool, "replace.enabled"]
"""Whether unknown words are replaced."""
