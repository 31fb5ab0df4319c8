"""Translation memories: TMX, and XLIFF 1.2 and 2."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from convs2s.base.files import open_text

XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
UNITS = "{*}tu", "{*}trans-unit", "{*}segment"
# Inline elements whose content is formatting of the original document; that of others, such as <g>, is text.
CODES = [f"{{*}}{name}" for name in ("bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec", "cp")]


def read_memory(path: Path, languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the segments of a memory that are in both languages, without inline tags.

    Entities that a file defines are not resolved, so none can make it grow, and nothing is fetched.

    Args:
        languages: codes of source and target; en also finds en-US.
    """
    seen, pairs = set[str](), 0
    with open_text(path) as stream:
        events = etree.iterparse(stream, tag=UNITS, resolve_entities=False, no_network=True)
        try:
            for _, unit in events:
                texts = dict(reversed(list(list_texts(unit))))  # the first of a language counts
                seen |= texts.keys()
                if all(language in texts for language in languages):
                    pairs += 1
                    yield texts[languages[0]], texts[languages[1]]
                unit.clear()
                while unit.getprevious() is not None:
                    del unit.getparent()[0]
        except etree.XMLSyntaxError as error:
            raise ValueError(
                f"{path} is not well-formed XML: {error}. Expected .tmx or .xliff: is it complete?"
            ) from error
    if not pairs:
        languages_found = ", ".join(sorted(seen)) or "no segments"
        raise ValueError(
            f"{path}: expected segments in {' and '.join(languages)}, found {languages_found}. Is "
            "it a translation memory, .tmx or .xliff, with the `languages` of params.yaml?"
        )


def list_texts(unit: Any) -> Iterator[tuple[str, str]]:
    """Yield the language, without region or script, and the text of each side of a unit, on one line."""
    variants = unit.iterchildren("{*}tuv")
    sides = [(node.get(XML_LANGUAGE) or node.get("lang"), node.find("{*}seg")) for node in variants]
    for side, old, new in ("source", "source-language", "srcLang"), ("target", "target-language", "trgLang"):
        nearest = unit.xpath(f"string((ancestor::*/@{old} | ancestor::*/@{new})[last()])")
        sides.append((nearest, unit.find(f"{{*}}{side}")))
    for language, segment in sides:
        if language and segment is not None:
            etree.strip_elements(segment, *CODES, etree.Comment, etree.PI, etree.Entity, with_tail=False)
            text = etree.tostring(segment, method="text", encoding="unicode", with_tail=False)
            yield re.split("[-_]", language.lower())[0], re.sub(r"\s*[\r\n]+\s*", " ", text).strip()
