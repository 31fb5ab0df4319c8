"""No page of the site loads anything from another host."""

from pathlib import Path

import pytest

from pipelines.reference.outside_hosts import loads, main


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("a.html", '<a href="https://x.org">x</a> <img src="y.png"> <link rel="next" href="z.html">', 0),
        ("a.html", '<link rel="stylesheet" href="https://x.org/a.css">', 1),
        ("a.html", '<script src="//x.org/a.js"></script><img src="http://x.org/a.png">', 2),
        ("a.html", "<style>@import 'https://x.org/a.css';</style>", 1),
        ("a.css", "body { background: url(https://x.org/a.png) } p { background: url(b.png) }", 1),
    ],
)
def test_what_a_page_loads_is_found(tmp_path: Path, name: str, text: str, count: int) -> None:
    """Links do not count, because a browser does not load them by itself."""
    (tmp_path / name).write_text(text)
    assert len(list(loads(tmp_path))) == count


def test_the_addresses_are_named(tmp_path: Path) -> None:
    """Without the page and address, nobody could find the reference."""
    (tmp_path / "a.html").write_text('<img src="https://x.org/a.png">')
    with pytest.raises(SystemExit, match=r"a\.html: https://x\.org/a\.png"):
        main([str(tmp_path)])
