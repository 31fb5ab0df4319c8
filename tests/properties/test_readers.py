"""Whatever a file contains, its reader returns or raises a documented error that names the file."""

import random
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from tests.properties.conftest import EXAMPLES
from tests.properties.damage import damaged, drawn
from tests.properties.readers import READERS, Reader

BY_HYPOTHESIS = 1000  # at most; further inputs are drawn by our own code, which is faster but cannot shrink


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_named(reader: Reader) -> None:
    """Damage must not cause any other exception, a crash in a library, or an endless loop."""
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "folder" / reader.name
        path.parent.mkdir()
        reader.prepare(path)
        reader.read(path)  # the good file
        whole = path.read_bytes()

        @settings(max_examples=min(EXAMPLES, BY_HYPOTHESIS))
        @given(damaged(whole))
        def property_of(content: bytes) -> None:
            path.write_bytes(content)
            check(reader, path)

        property_of()
        for seed in range(BY_HYPOTHESIS, EXAMPLES):
            content = drawn(whole, random.Random(seed))
            path.write_bytes(content)
            try:
                check(reader, path)
            except BaseException as error:
                error.add_note(f"seed {seed}: {content!r}")
                raise


def check(reader: Reader, path: Path) -> None:
    """Read a file; any error must be one meant for users, and must name the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(path)
    except (ValueError, OSError) as error:
        assert path.name.split(".")[0] in str(error), f"no file in the message: {error}"
