"""Whatever is in a file, a reader returns or raises one of its documented errors, which names the file."""

import random
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from tests.properties.conftest import EXAMPLES
from tests.properties.damage import damaged, drawn
from tests.properties.readers import READERS, Reader

pytestmark = pytest.mark.fault("input")


BY_HYPOTHESIS = 1000  # inputs at most, each of which it would simplify; the others are drawn, which is faster


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_named(reader: Reader) -> None:
    """No other exception, no crash of a library, nothing that does not end."""
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
    """Read a file; an error must be one for users, and name it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(path)
    except (ValueError, OSError) as error:
        assert path.name.split(".")[0] in str(error), f"no file in the message: {error}"
