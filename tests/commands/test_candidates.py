"""`convs2s candidates`, and translation with its file, for an imported model without candidates."""

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from convs2s.cli import main
from convs2s.ids.candidates import read_candidates
from convs2s.ids.vocabulary import SPECIALS
from convs2s.package.translator import SELECTION, load

TEXTS = 8


class Corpus(NamedTuple):
    """A parallel corpus of a model's own words, and the file of candidates that the command made of it."""

    texts: list[str]
    translations: list[str]
    source: Path
    candidates: Path
    messages: str


@pytest.fixture(scope="module")
def corpus(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Run `convs2s candidates` on sentences of three words, of which word i translates word i.

    No word is repeated, so each has one translation.
    """
    folder = tmp_path_factory.mktemp("candidates")
    words = load(plain, "cpu").words
    assert len(words.target.vocabulary) < SELECTION.common, "else the common ones must be fewer"
    entries = [codec.vocabulary.entries[3 : 3 + 3 * TEXTS] for codec in (words.source, words.target)]
    texts, translations = ([" ".join(side[3 * i : 3 * i + 3]) for i in range(TEXTS)] for side in entries)
    files = source, target = folder / "source.txt", folder / "target.txt"
    for file, lines in zip(files, (texts, translations), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    out = folder / "candidates.npz"
    options = ["--source", str(source), "--target", str(target), "--output", str(out)]
    with contextlib.redirect_stderr(io.StringIO()) as messages:
        assert main(["candidates", "--model", str(plain), *options]) == 0
    return Corpus(texts, translations, source, out, messages.getvalue())


def test_candidates_of_a_sentence_are_the_words_it_is_aligned_with(plain: Path, corpus: Corpus) -> None:
    """Other words would make the search slower, and missing ones could not be written."""
    words = load(plain, "cpu").words
    candidates = read_candidates(corpus.candidates)
    for text, translation in zip(corpus.texts, corpus.translations, strict=True):
        ids = torch.tensor(words.source.encode(text.split())[:-1]).numpy()
        assert set(candidates.of(ids).tolist()) <= set(words.target.encode(translation.split())[:-1])


def test_the_search_takes_only_common_words_and_candidates(plain: Path, corpus: Corpus) -> None:
    """With one common word, all others of a translation are aligned with the source."""
    selective = load(plain, "cpu", candidates=corpus.candidates, selection={"common": 1, "candidates": 5})
    [[best]] = selective.translate_n_best(corpus.texts[:1])
    common = map(selective.words.target.vocabulary.entry, range(len(SPECIALS) + 1))
    assert set(best.tokens) <= {*common, *corpus.translations[0].split()}


def test_candidates_alone_turn_selection_on(plain: Path, corpus: Corpus) -> None:
    """An imported model brings no numbers for it, so those of the authors' code apply."""
    assert load(plain, "cpu", candidates=corpus.candidates).words.params.selection == SELECTION


def test_the_command_counts_pairs_and_leaves_one_file(corpus: Corpus) -> None:
    """It works in a temporary folder, of which nothing may be left."""
    assert "8 pairs: " in corpus.messages
    names = {path.name for path in corpus.candidates.parent.iterdir()}
    assert names == {"candidates.npz", "source.txt", "target.txt"}


def translate(plain: Path, corpus: Corpus, candidates: Path, output: Path) -> int:
    """Translate the corpus with a file of candidates; return the exit status."""
    files = ["--input", str(corpus.source), "--output", str(output), "--candidates", str(candidates)]
    return main(["translate", "--model", str(plain), "--device", "cpu", *files])


def test_translate_reads_the_file(plain: Path, corpus: Corpus, tmp_path: Path) -> None:
    """The command is useless unless `translate` takes its file; each line must get its translation."""
    assert translate(plain, corpus, corpus.candidates, tmp_path / "new.txt") == 0
    assert len((tmp_path / "new.txt").read_text(encoding="utf-8").splitlines()) == TEXTS


def test_translate_refuses_any_other_file(plain: Path, corpus: Corpus, tmp_path: Path) -> None:
    """It is easy to give a text by mistake, which must be an error before anything is translated."""
    assert translate(plain, corpus, corpus.source, tmp_path / "new.txt") == 2
    assert not (tmp_path / "new.txt").exists()
