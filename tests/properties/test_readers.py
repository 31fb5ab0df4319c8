"""Whatever a file contains, its reader returns or raises a documented error that names the file."""

import random
import warnings
from pathlib import Path

import pytest

from tests.properties.conftest import EXAMPLES
from tests.properties.damage import damage
from tests.properties.readers import READERS, Reader


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_named(reader: Reader, tmp_path: Path) -> None:
    """Damage must not cause any other exception, a crash in a library, or an endless loop."""
    path = tmp_path / "folder" / reader.name
    path.parent.mkdir()
    reader.prepare(path)
    reader.read(path)  # the good file
    whole = path.read_bytes()
    for seed in range(EXAMPLES):
        content = damage(whole, random.Random(seed))
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
