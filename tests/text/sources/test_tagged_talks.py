"""Training text of WIT3, where each talk starts with tags."""

from pathlib import Path

import pytest

from convs2s.text.sources.pair_files import file_part

GERMAN = """<url>http://www.ted.com/talks/x.html</url>
<keywords>talks, TED</keywords>
<talkid>535</talkid>
<title>Stephen Palumbi: Der Spur folgen</title>
<description>TED Talk Subtitles</description>
Es kann <b>kompliziert</b> sein.
<laughter> Lachen
"""


def write(folder: Path, source: str, target: str) -> list[Path]:
    paths = [folder / "train.tags.de-en.de", folder / "train.tags.de-en.en"]
    for path, text in zip(paths, (source, target), strict=True):
        path.write_text(text, encoding="utf-8", newline="\n")
    return paths


def test_titles_and_descriptions_are_text_and_other_tags_are_dropped(tmp_path: Path) -> None:
    """The authors' script does the same; unknown tags belong to the sentence."""
    english = GERMAN.replace("Der Spur folgen", "Following it").replace("kompliziert", "complicated")
    part = file_part(write(tmp_path, GERMAN, english), None)
    assert [pair.source for pair in part.pairs] == [
        "Stephen Palumbi: Der Spur folgen",
        "TED Talk Subtitles",
        "Es kann <b>kompliziert</b> sein.",
        "<laughter> Lachen",
    ]


def test_different_tags_are_an_error(tmp_path: Path) -> None:
    """All lines after the difference would be paired wrongly."""
    english = GERMAN.replace("<talkid>535</talkid>\n", "")
    part = file_part(write(tmp_path, GERMAN, english), None)
    with pytest.raises(ValueError, match=r"line 3: .*\.de has talkid but .*\.en has title\. Line i"):
        list(part.pairs)


def test_only_files_named_as_tagged_are_untagged(tmp_path: Path) -> None:
    """Plain text with tags is left alone; it is an error if only one side is tagged."""
    paths = write(tmp_path, GERMAN, GERMAN)
    plain = paths[1].rename(tmp_path / "train.en")
    with pytest.raises(ValueError, match=r"train\.tags\.de-en\.de has segments or tags.*train\.en does not"):
        list(file_part([paths[0], plain], None).pairs)
    assert len(list(file_part([plain, plain], None).pairs)) == 7
