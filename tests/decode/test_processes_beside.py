"""Words are split and put together in other processes while a GPU searches, with the same results."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest

from convs2s.decode.translations import Hypothesis
from convs2s.decode.word_translator import WordTranslator
from convs2s.package import translator as translators
from convs2s.package.translator import Translation, load
from tests.decode.parrot import word_parrot, write_vocabulary
from tests.package.small_package import write_small_package

WORDS = ["Das", "ist", "ein", "Haus", ".", "und", "noch", "eins"]
SENTENCES = [[], *(WORDS[: i % 7 + 1] for i in range(20)), WORDS * 2]
"""The first has no words, the last is longer than the position table."""


def finish(number: int, hypotheses: list[Hypothesis]) -> tuple[int, int, list[str]]:
    """Return the process, the sentence's number, and the best translation."""
    return os.getpid(), number, hypotheses[0].words


@pytest.mark.filterwarnings("ignore:A sentence has")
@pytest.mark.parametrize("processes", [1, 2])
def test_words_are_put_together_beside_the_search(tmp_path: Path, processes: int) -> None:
    """In other processes if there are several, in the order of the sentences; a long one is in parts."""
    translator = word_parrot(write_vocabulary(tmp_path / "vocabulary"), limit=10)
    done: list[int] = []
    with mock.patch.object(WordTranslator, "processes_beside", processes):
        finished = translator.translate_into(finish, SENTENCES, keep_attention=True, on_done=done.append)
    assert [number for _, number, _ in finished] == list(range(len(SENTENCES)))
    assert [words for _, _, words in finished] == SENTENCES
    assert sum(done) == len(SENTENCES)
    assert ({process for process, _, _ in finished} == {os.getpid()}) == (processes == 1)
    assert ({process for process, _, _ in finished} & {os.getpid()} == set()) == (processes == 2)


def test_a_few_sentences_start_no_process(tmp_path: Path) -> None:
    """Starting one takes longer than they do."""
    translator = word_parrot(write_vocabulary(tmp_path / "vocabulary"))
    with mock.patch.object(WordTranslator, "processes_beside", 2):
        finished = translator.translate_into(finish, SENTENCES[1:4], keep_attention=False)
    assert {process for process, _, _ in finished} == {os.getpid()}


def test_one_process_searches_all_batches_first(tmp_path: Path) -> None:
    """On a CPU, batches are searched faster if nothing is done between them."""
    translator = word_parrot(write_vocabulary(tmp_path / "vocabulary"))
    done: list[int] = []
    finished = translator.translate_into(
        lambda *_: sum(done), SENTENCES, keep_attention=False, on_done=done.append
    )
    assert set(finished) == {len(SENTENCES)}


def test_texts_are_translated_as_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Splitting them into words is also shared out; whatever is found is the same."""
    monkeypatch.setattr(translators, "READ_AT_ONCE", 3)
    translator = load(write_small_package(tmp_path), "cpu", n_best=2, batch_sentences=4)
    texts = ["Das ist ein Haus.", "noch ein ☃ Hund", "", "eins, Łódź"] * 3

    def translate(processes: int) -> list[list[Translation]]:
        with mock.patch.object(WordTranslator, "processes_beside", processes):
            return translator.translate_n_best(texts, prefixes=["Das", "", "", ""] * 3)

    for found, expected in zip(itertools.chain(*translate(2)), itertools.chain(*translate(1)), strict=True):
        assert found == expected


def test_an_error_beside_the_search_comes_through(tmp_path: Path) -> None:
    """A fault of putting words together must not be lost with its process."""
    translator = word_parrot(write_vocabulary(tmp_path / "vocabulary"))

    def fail(number: int, hypotheses: Sequence[Hypothesis]) -> None:
        raise ValueError(f"sentence {number}")

    with (
        mock.patch.object(WordTranslator, "processes_beside", 2),
        pytest.raises(ValueError, match="sentence 0"),
    ):
        translator.translate_into(fail, SENTENCES, keep_attention=False)
