"""The external aligners, played by small scripts on PATH."""

import os
from pathlib import Path

import pytest

from convs2s.text.alignment.backends import BACKENDS
from tests.text.alignment.corpora import number, unpack

# Links the first words of both sides, and records its input and options.
FAST_ALIGN = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
cp "$2" "$(dirname "$0")/input"
while read -r line; do echo 0-0; done < "$2"
"""
ATOOLS = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
cat "$4"
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with both programs, the only one on PATH except the system's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    install(folder, "fast_align", FAST_ALIGN)
    install(folder, "atools", ATOOLS)
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), "/usr/bin", "/bin"]))
    return folder


def install(folder: Path, name: str, script: str) -> None:
    """Write a program."""
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def run(folder: Path, pairs: list[tuple[str, str]], iterations: int = 5) -> list[list[tuple[int, int]]]:
    """Return the links of a corpus."""
    return unpack(BACKENDS["fast_align"](number(folder, pairs)[0], iterations, folder))


def test_both_directions_and_atools_are_run_with_fast_aligns_options(tmp_path: Path, programs: Path) -> None:
    """fast_align -d -o -v, once more with -r, then atools -c grow-diag-final-and (T33)."""
    assert run(tmp_path, [("a b", "x")], 7) == [[(0, 0)]]
    forward, backward, both = (programs / "calls").read_text().splitlines()
    text = forward.split()[1]
    assert forward == f"-i {text} -d -o -v -I 7"
    assert backward == f"-i {text} -d -o -v -I 7 -r"
    assert both.startswith("-c grow-diag-final-and -i ")
    assert not Path(text).exists()  # the temporary folder is gone


@pytest.mark.parametrize(
    ("pairs", "links", "text"),
    [
        # fast_align stops at a line with an empty side.
        ([("a", "x"), ("", "y"), ("b", ""), ("c", "z")], [[(0, 0)], [], [], [(0, 0)]], "0 ||| 0\n2 ||| 2\n"),
        # A word ||| would end the source side; fast_align does not split words at a no-break space.
        ([("a  |||\xa0b", "||| x")], [[(0, 0)]], "0 1 2 ||| 0 1\n"),
        # fast_align fails on an empty file.
        ([("", "x")], [[]], None),
    ],
)
def test_the_programs_get_text_that_they_can_read(
    tmp_path: Path, programs: Path, pairs: list[tuple[str, str]], links: list[list[object]], text: str | None
) -> None:
    """Words are numbered and pairs with an empty side left out; links still belong to the right pairs."""
    assert run(tmp_path, pairs) == links
    given = programs / "input"
    assert (given.read_text(encoding="utf-8") if given.exists() else None) == text


def test_a_missing_or_failing_program_is_named_with_a_remedy(tmp_path: Path, programs: Path) -> None:
    """Missing ones are found before any computation; a failing one prints the cause to stderr itself."""
    install(programs, "fast_align", "#!/bin/sh\necho 'out of memory' >&2\nexit 3\n")
    with pytest.raises(ChildProcessError, match=r"fast_align -i .* ended with status 3"):
        run(tmp_path, [("a", "x")])
    for name in ("atools", "fast_align"):
        (programs / name).unlink()
        message = f"program {name} is not on PATH. Build it from .* or choose align.backend: builtin"
        with pytest.raises(FileNotFoundError, match=message):
            run(tmp_path, [("a", "x")])
