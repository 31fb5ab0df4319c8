"""Twice the text takes twice the time: no reader or tokenizer can be stopped by a long line."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convs2s.text.sentences import split_sentences
from convs2s.text.sources.memory import read_memory
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.tagged_text import read_segments
from convs2s.text.words.literals import hide_literals
from convs2s.text.words.tokenization import Tokenizer
from tests.presets import params_of

ROOT = Path(__file__).parents[2]


def segments(text: str, folder: Path) -> None:
    (folder / "a.sgm").write_text(f'<doc docid="d"><seg id="1">a</seg></doc>{text}')
    read_segments(folder / "a.sgm")


def talks(text: str, folder: Path) -> None:
    (folder / "train.tags.en").write_text(f"<title>a{text}b</title>\n")
    (folder / "train.tags.de").write_text(f"<title>a{text}b</title>\n")
    list(file_part([folder / "train.tags.en", folder / "train.tags.de"], None, ("en", "de")).pairs)


def table(text: str, folder: Path) -> None:
    (folder / "a.tsv").write_text(f"{text}\t{text} b\n")
    list(file_part([folder / "a.tsv"], (0, 1), ("en", "de")).pairs)


def memory(text: str, folder: Path) -> None:
    side = "<tuv xml:lang='{}'><seg>a{}b</seg></tuv>"
    sides = side.format("en", text) + side.format("de", text)
    (folder / "a.tmx").write_text(f"<tmx><body><tu>{sides}</tu></body></tmx>")
    list(read_memory(folder / "a.tmx", ("en", "de")))


def words(language: str) -> Callable[[str, Path], object]:
    changes = {"tokenizer": "moses", "normalize_punctuation": True, "typography": True}
    params = params_of("tatoeba-en-de").tokenize.model_copy(update=changes)
    tokenizer = Tokenizer(language, params)
    return lambda text, _: tokenizer.detokenize(tokenizer.tokenize(text))


def literals(text: str, _: Path) -> None:
    hide_literals(text)


def no_phone_number(text: str, _: Path) -> None:
    hide_literals(f"+{text}x")


def sentences(text: str, _: Path) -> None:
    split_sentences(text, "fr")


@pytest.mark.parametrize(
    ("read", "part"),
    [
        *((literals, part) for part in (
            "<?", "<%", "{%", "{", "{{a", "<a ", "<a b=c ", "<a b='", "https://", "https://(", "https://(a",
            "www.", "a@", "a@a.", "@a", "@a/", "#1", "%0", "%0.", "%a", ":a", "[1,", "/a", "/.", "/a/", "a/",
            "+/a", "C:\\a b ", "1.", "v1.", "a.", "A.", "AB.", "aB", "aB.", "a_.", "a-", "a.com/", "| ", "|-",
            "- ", "1 ", "((", "é", "日",
        )),
        *((no_phone_number, part) for part in ("1", "1 ", "(1)", "1-1")),
        *((sentences, part) for part in (
            "a. ", "M. ", "1. ", "a. b. ", "1. a 2. ", "ii. ", "A.B. ", "「はい。」と", "“好。”他说", "a\t",
            "| a ", "! -- a ", " :) A", "… A", "'s ", "https://a.org/B.C ", "{a}. ", '"a." ', "? ", "[a ",
        )),
        *((segments, part) for part in ("<doc ", "<seg ", "</seg ", "<doc id=", "<doc a", "<url>", "<", " ")),
        *((talks, part) for part in (" ", "<title>", "</title ", "<speaker>")),
        *((table, part) for part in ("\"", "'", '""', "1,", "\\\\", "a ", "\r")),
        *((memory, part) for part in (" ", "\n ", "<x/>", "&lt;", "<g/>a")),
        *((words("de"), part) for part in ("…", ".", '." ', '."', " .", "'", '"', "„", "( ", "1,", "- ")),
        *((words("fr"), part) for part in ("…", ".", "« ", "l'", " :")),
        *((words("en"), part) for part in ("…", ".", "'s ", '",', "a'a")),
    ],
)  # fmt: skip
def test_time_grows_with_length(read: Callable[[str, Path], Any], part: str, tmp_path: Path) -> None:
    """Four times the text would take sixteen times as long if each character were compared with all others.

    It is processor time, which other processes hardly change.
    """

    def seconds(repeats: int) -> float:
        start = time.process_time()
        try:
            read(part * repeats, tmp_path)
        except ValueError as error:
            assert "Is" in str(error)
        return time.process_time() - start

    read_once = seconds(10)  # with what is imported on the way
    short, long = min(seconds(4000), seconds(4000)), seconds(16_000)
    assert long < 8 * short + 0.1 + read_once
