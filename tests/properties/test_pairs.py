"""Whatever a reader of some format yields, pairs are written and read back as they are, or refused."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from convs2s.base.files import read_folder, write_folder

LINES = st.text(st.sampled_from("ab \n\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029\0é🙂"), max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=6
)


@given(st.lists(st.tuples(LINES, LINES), max_size=4))
def test_pairs_written_are_the_pairs_read(pairs: list[tuple[str, str]]) -> None:
    """A line end that gets through would give every pair below it the translation of another."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pairs"
        try:
            write_folder(folder, pairs)
        except ValueError as error:
            assert "expected one line of text" in str(error)
            assert any("\n" in side or side.endswith("\r") for pair in pairs for side in pair)
            return
        read = list(read_folder(folder))
    if pairs and read != pairs:  # of a file, a byte order mark is no text
        pairs = [tuple(side.removeprefix("\ufeff") for side in pairs[0]), *pairs[1:]]  # type: ignore[list-item]
    assert read == pairs
