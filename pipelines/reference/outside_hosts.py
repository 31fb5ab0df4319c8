"""Check that no page of a site loads anything from another host; `make docs` runs this.

Links for readers may lead anywhere; styles, scripts, fonts and pictures must be files of the site.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

OUTSIDE = re.compile(r"\s*(https?:)?//")
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


class Resources(HTMLParser):
    """Collects the addresses on other hosts that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record what a tag loads; `a` loads nothing."""
        names = {"src", "srcset", "data", "poster"} | ({"href"} if tag in {"link", "image", "use"} else set())
        self.found += [value for name, value in attrs if name in names and value and OUTSIDE.match(value)]


def outside(path: Path) -> list[str]:
    """Return the addresses on other hosts that a file of a site loads."""
    text = path.read_text(encoding="utf-8")
    parser = Resources()
    if path.suffix == ".html":
        parser.feed(text)
    return parser.found + IN_STYLES.findall(text)


def loads(site: Path) -> Iterator[str]:
    """Yield a line for each such address."""
    for path in sorted(path for path in site.rglob("*") if path.suffix in {".html", ".css", ".svg"}):
        yield from (f"{path}: {address}" for address in outside(path))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the addresses; exit with status 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, metavar="DIR", help="folder of the pages")
    if found := list(loads(parser.parse_args(arguments).site)):
        sys.exit("These pages load from other hosts; wanted only files of the site:\n" + "\n".join(found))


if __name__ == "__main__":
    main()
