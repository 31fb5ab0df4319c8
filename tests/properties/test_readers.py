"""Whatever is in a file, a reader returns or raises one of its documented errors, which names the file."""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from tests.properties.damage import damaged
from tests.properties.readers import READERS, Reader

pytestmark = pytest.mark.fault("input")


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_named(reader: Reader) -> None:
    """No other exception, no crash of a library, nothing that does not end."""
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "folder" / reader.name
        path.parent.mkdir()
        reader.prepare(path)
        reader.read(path)  # the good file

        @given(damaged(path.read_bytes()))
        def property_of(content: bytes) -> None:
            path.write_bytes(content)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    reader.read(path)
            except (ValueError, OSError) as error:
                assert path.name.split(".")[0] in str(error), f"no file in the message: {error}"

        property_of()
