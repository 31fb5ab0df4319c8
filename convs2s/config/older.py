"""Defaults for keys that older model folders and checkpoints lack: one table for all sections.

A new option of `model`, `tokenize`, `translate` or `train` gets an entry here: the value that keeps the
behavior from before the option existed. Older model folders then still load, and interrupted training runs
resume.
"""

from collections.abc import Mapping

ADDED: dict[str, dict[str, object]] = {
    "model": {},
    "tokenize": {
        "corpus": "raw", "lossless": False, "normalize_unicode": False, "normalize_romanian": False,
        "remove_diacritics": False, "at_sign": "@", "lowercase": False, "truecase": False,
        "typography": False,
    },
    "translate": {"selection": None, "max_length_of": "sentence"},
    "train": {"selection": None},
}  # fmt: skip


def with_added_keys(name: str, section: object) -> object:
    """Return a section read from a file, with the keys that older files lack added.

    Anything but a mapping is returned unchanged, for the schema to reject.
    """
    return ADDED[name] | dict(section) if isinstance(section, Mapping) else section


def without_added_keys(name: str, section: Mapping[str, object]) -> dict[str, object]:
    """Return a section without later keys that have their default value: as it was before they existed."""
    added = ADDED[name]
    return {key: value for key, value in section.items() if key not in added or value != added[key]}
