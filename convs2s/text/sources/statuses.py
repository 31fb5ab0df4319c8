"""What a translation memory says of a segment's translation: finished, suggested by a machine, rejected.

The values are those of XLIFF 1.2 and 2, and of Trados, memoQ and Phrase, which have attributes of their own.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

Fact = tuple[str, str]
"""The name of an attribute, without its namespace, and its value."""

TAKEN = {
    "translate": "yes",
    "state": "translated signed-off reviewed final",
    "state-qualifier": (
        "exact-match id-match leveraged-glossary leveraged-inherited leveraged-repository leveraged-tm"
    ),
    "approved": "yes",
    "conf": "Translated ApprovedTranslation ApprovedSignOff",
    "origin": "source tm interactive document-match auto-propagated",
    "status": "ManuallyConfirmed Reviewer1Confirmed Proofread",
    "confirmed": "1 2 3 4 5 6 7 8 9 10 11 12",
}
"""By attribute, the values with which a segment is taken like one without the attribute.

`conf` and `origin` are those of Trados, `status` that of memoQ, `confirmed` that of Phrase.
"""
LEFT_OUT = {
    "translate": "no",
    "state": "new needs-translation needs-l10n initial",
    "state-qualifier": (
        "fuzzy-match leveraged-mt mt-suggestion tm-suggestion "
        "rejected-grammar rejected-inaccurate rejected-length rejected-spelling"
    ),
    "conf": "NotTranslated Draft RejectedTranslation RejectedSignOff",
    "status": "NotStarted PreTranslated PartiallyEdited AssembledFromFragments MachineTranslated Rejected",
    "confirmed": "0",
    "creationid": "MT!",
}
"""By attribute, the values with which a segment is left out; with any other value it is taken and counted."""
IS_TAKEN = {
    (name, value.lower()): values is TAKEN
    for values in (TAKEN, LEFT_OUT)
    for name, listed in values.items()
    for value in listed.split()
}
APPROVED = {("approved", "yes"), ("state", "final"), ("state", "signed-off")}
DERIVED = {("state-qualifier", "fuzzy-match"), ("state-qualifier", "leveraged-mt")}
"""What a text was before people worked on it; with APPROVED, it is taken and counted."""
KNOWN = {*TAKEN, *LEFT_OUT, "subState", "srclang"}
"""Attributes that are counted by their values; others are counted by their names."""
OTHER = re.compile(r"(?:status|state|confirmed|approved)$", re.IGNORECASE).search
"""Finds the names of such attributes of other programs."""
PROPERTIES = {"confirmationlevel": "conf", "origin": "origin"}
"""Trados' properties in TMX, and the attributes of .sdlxliff that have the same values."""
LONGEST_VALUE = 40  # characters in a message


def judge(facts: Iterable[Fact]) -> tuple[str, str]:
    """Return why a segment is left out, and why it is doubtful if it is taken; "" where there is no reason.

    The first is to follow "left out segments".
    """
    doubt = ""
    cleaned = [(name, " ".join(value.split())[:LONGEST_VALUE]) for name, value in facts]
    folded = [(name, value.lower()) for name, value in cleaned]
    is_approved = not APPROVED.isdisjoint(folded)
    for fact, (name, value) in zip(folded, cleaned, strict=True):
        words = f"{name}={value}" if name in KNOWN else name
        is_taken = IS_TAKEN.get(fact)
        if fact[1].startswith("reject") or (is_taken is False and not (is_approved and fact in DERIVED)):
            fault = (
                "not translated" if name in {"translate", "state"} else "unfinished, suggested or rejected"
            )
            return f"that are {fault} ({words})", ""
        if not is_taken and not doubt:
            doubt = f"segments taken, though they may need a review ({words})"
    return "", doubt


def list_attributes(node: Any) -> Iterator[Fact]:
    """Yield the attributes of an element that say how it was translated."""
    for key, value in node.attrib.items():
        name = etree.QName(key).localname
        if value and name != "translate" and (name in TAKEN or OTHER(name)):
            yield name, value
    if etree.QName(node).localname == "seg" and "conf" not in node.attrib:  # of Trados
        yield "conf", "Unspecified"
    if node.get("creationid") == "MT!" == node.get("changeid", "MT!"):  # and no person has changed it
        yield "creationid", "MT!"


def list_properties(node: Any) -> Iterator[Fact]:
    """Yield the properties of an element of TMX that say how it was translated."""
    for child in node.iterchildren("{*}prop"):
        name = (child.get("type") or "").partition(":")[0].removeprefix("x-")
        if name.lower() in PROPERTIES or OTHER(name):
            yield PROPERTIES.get(name.lower(), name), child.text or ""
