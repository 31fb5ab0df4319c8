"""Training text of WIT3 (IWSLT), whose talks start with tags, such as `train.tags.de-en.de`."""

import re
from collections.abc import Iterator
from pathlib import Path

from convs2s.text.corpus.files import read_pairs

KEPT = ("title", "description")
"""Tags that contain translated text."""
DROPPED = ("url", "talkid", "keywords", "speaker", "reviewer", "translator", "doc")
"""Tags that contain metadata of the talk."""
NAMES = "|".join((*KEPT, *DROPPED))
TAGGED = re.compile(rf"^\s*</?(?P<tag>{NAMES})\b[^>]*>(?P<text>.*?)(?:</(?P=tag)\s*>)?\s*$", re.IGNORECASE)


def is_tagged(path: Path) -> bool:
    """Return whether a file has such tags, judging by its name, which WIT3 prescribes."""
    return path.name.startswith("train.tags.")


def read_tagged_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs, titles and descriptions of talks; tags not listed here count as text.

    Raises:
        ValueError: if line i of the two files has different tags, or as `read_pairs`.
    """
    for number, (ours, theirs) in enumerate(read_pairs(source, target), start=1):
        (our_tag, our_text), (their_tag, their_text) = untag(ours), untag(theirs)
        if our_tag != their_tag:
            raise ValueError(
                f"line {number}: {source} has {our_tag} but {target} has {their_tag}. Line i of one must "
                "translate line i of the other: is a file incomplete?"
            )
        if our_tag not in DROPPED:
            yield our_text, their_text


def untag(line: str) -> tuple[str, str]:
    """Return the tag around a line, or "no tag", and its text."""
    match = TAGGED.match(line)
    return (match["tag"].lower(), match["text"].strip()) if match else ("no tag", line)
