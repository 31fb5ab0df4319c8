"""Stage tokenize."""

from pathlib import Path

import pytest

from convs2s.text.corpus.files import read_folder, write_folder
from convs2s.text.words import pairs as word_pairs
from pipelines.stages import tokenize
from tests.decode.parrot import TOKENIZE

LANGUAGES = ("en", "de")


def test_each_line_gives_one_line_of_words(tmp_path: Path) -> None:
    """Line i of the output must be line i of the input, or all later stages pair the wrong sentences."""
    pairs = [("It's late.", "Es ist „spät“."), ("", "x\u2028y\x0bz"), ("a\tb\x00c", ""), ("\x85", "🙂")]
    write_folder(tmp_path / "raw", pairs)
    tokenize.run(TOKENIZE, LANGUAGES, tmp_path / "truecasers", tmp_path / "raw", tmp_path / "out")
    assert list(read_folder(tmp_path / "out")) == [
        ("It 's late .", 'Es ist " spät " .'),
        ("", "x y z"),
        ("a b c", ""),
        ("", "🙂"),
    ]


def test_several_processes_write_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC hashes the output: it must not depend on the number of cores."""
    write_folder(tmp_path / "raw", [(f"No. {i}, it's so.", f"Nr. {i}, „so“.") for i in range(100)])
    monkeypatch.setattr(word_pairs, "CHUNK_PAIRS", 7)
    for cores in (1, 2):
        monkeypatch.setattr("convs2s.text.corpus.parallel.cores", lambda cores=cores: cores)
        tokenize.run(TOKENIZE, LANGUAGES, tmp_path / "truecasers", tmp_path / "raw", tmp_path / f"out{cores}")
    for name in ("source.txt", "target.txt"):
        assert (tmp_path / "out1" / name).read_bytes() == (tmp_path / "out2" / name).read_bytes()


def test_an_empty_split_stays_empty(tmp_path: Path) -> None:
    """If validation pairs come from the training set, the raw validation files are empty."""
    write_folder(tmp_path / "raw", [])
    tokenize.run(TOKENIZE, LANGUAGES, tmp_path / "truecasers", tmp_path / "raw", tmp_path / "out")
    assert (tmp_path / "out/source.txt").read_bytes() == b""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\n\xe4\n", r"target\.txt, line 2: byte 0 is 0xe4, which is not UTF-8"),
        (b"a\n", r"2 lines but .* has 1"),
    ],
)
def test_bad_text_leaves_no_output(tmp_path: Path, content: bytes, message: str) -> None:
    """The message names file and line; a half-written folder would look like a result."""
    write_folder(tmp_path / "raw", [("a", "b"), ("c", "d")])
    (tmp_path / "raw/target.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        tokenize.run(TOKENIZE, LANGUAGES, tmp_path / "truecasers", tmp_path / "raw", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
