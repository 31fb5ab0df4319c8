"""Text in, text out, with a model that repeats its source and with a small real one."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.decode.sampling import Sampling
from convs2s.decode.unknown_replacement import Replacement
from convs2s.ids.candidates import NO_CANDIDATES
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import EOS
from convs2s.model.description import seal
from convs2s.model.storage import load_model
from convs2s.package.translator import Translator, load
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE, word_parrot, write_vocabulary
from tests.package.small_package import write_model, write_small_package

# Each is one line to us, though not always to Python's splitlines; also other text that users paste.
STRANGE = [
    "", " ", "\t", "a\u2028b\u2029c\x0bd\x0ce\x85f", "\x00\x01\x1f\x7f", "😀 👩‍👩‍👧 🇩🇪",
    "\ud800 lone surrogate", "a\nb\r\nc", "\ufeffein", "▁ein▁ Haus</s><unk><pad>", "Haus " * 2000,
    "x" * 3000, "ein Haus.",
]  # fmt: skip


def parrot(folder: Path, dictionary: dict[str, str] | None = None, limit: int | None = None) -> Translator:
    tokenizer = Tokenizer("de", TOKENIZE)
    words = word_parrot(write_vocabulary(folder), limit, n_best=2)
    return Translator(words, tokenizer, tokenizer, dictionary)


def test_text_is_tokenized_translated_and_detokenized(tmp_path: Path) -> None:
    """The parrot knows "Haus" and "." but not "Haus."; a string gives a string, although it is a sequence."""
    translator = parrot(tmp_path)
    texts = ["Das ist ein Haus.", "", "und noch eins, ein Hund"]
    assert translator.translate(texts) == texts
    assert [translator.translate(text) for text in texts] == texts
    assert translator.translate_n_best("ein Hund")[0][0].text == "ein Hund"
    assert translator.score("ein Hund", "ein Hund") == translator.score(["ein Hund"], ["ein Hund"])
    assert translator.translate("ein Hund", prefixes="Haus") == "Haus Hund"


TEXT = "ein Haus.  ein Hund.\n\nund noch eins."


def test_a_text_is_translated_sentence_by_sentence(tmp_path: Path) -> None:
    """As if each were a text of its own; the white space between them stays. A packaged setting says so."""
    package = write_small_package(tmp_path)
    translator = load(package, "cpu", n_best=2, beam_size=2)
    first, second, third = translator.translate(["ein Haus.", "ein Hund.", "und noch eins."])
    whole = f"{first}  {second}\n\n{third}"
    assert translator.translate(TEXT) == whole
    assert translator.translate(["", TEXT, " "]) == ["", whole, ""]
    unsplit = load(package, "cpu", split_sentences=False)
    assert unsplit.translate(TEXT) == unsplit.translate_n_best(TEXT)[0][0].text != whole
    assert unsplit.translate(TEXT, split_sentences=True) == whole
    assert translator.translate(TEXT, split_sentences=False) == unsplit.translate(TEXT)


def test_the_sentences_of_a_text_have_their_n_best_lists(tmp_path: Path) -> None:
    """The text of a rank has that rank of each sentence; samples are numbered by sentences."""
    translator = load(write_small_package(tmp_path), "cpu", n_best=3, beam_size=3)
    done = list[int]()
    empty, translated = translator.translate_texts(["", TEXT], on_done=done.append)
    assert (empty.text, empty.sentences, empty.unknown_characters) == ("", [], 0)
    assert translated.sentences == ["ein Haus.  ", "ein Hund.\n\n", "und noch eins."]
    n_best_lists = translator.translate_n_best(["ein Haus.", "ein Hund.", "und noch eins."])
    assert translated.translations == n_best_lists
    texts = [ranked[1].text for ranked in n_best_lists]
    assert translated.of_rank(1) == f"{texts[0]}  {texts[1]}\n\n{texts[2]}"
    assert sum(done) == 2
    sampling = Sampling(seed=3)
    [sampled] = translator.translate_texts(TEXT, sampling=sampling)
    drawn = translator.translate_n_best(translated.sentences, sampling=sampling)
    assert sampled.translations == drawn


def test_a_prefix_belongs_to_one_sentence(tmp_path: Path) -> None:
    """So a text with a prefix is taken as one sentence, and cannot be split."""
    translator = load(write_small_package(tmp_path), "cpu")
    [[whole]] = translator.translate_n_best(TEXT, prefixes="Haus")
    assert translator.translate(TEXT, prefixes="Haus") == whole.text
    with pytest.raises(ValueError, match="prefixes are of single sentences"):
        translator.translate(TEXT, prefixes="Haus", split_sentences=True)


def test_a_given_translation_has_the_likelihood_that_the_model_gives_it(tmp_path: Path) -> None:
    """It is worked out from the outputs of the models; an ensemble takes the mean of their probabilities.

    The search has no part in it. A text that does not fit the position table has no likelihood.
    """
    folders = write_small_package(tmp_path / "1"), write_small_package(tmp_path / "2", phase=1.0)
    translator = load(folders, "cpu", min_length=5, batch_sentences=2)
    done: list[int] = []
    pairs = [("ein Haus.", "Haus und Hund."), ("", "ein"), ("ein", ""), ("ein", "Haus " * 31)]
    texts, translations = map(list, zip(*pairs, strict=True))
    *fitting, long = translator.score(texts, translations, done.append)
    models = [load_model(folder, torch.device("cpu")) for folder in folders]
    for (text, translation), given in zip(pairs, fitting, strict=False):
        source = torch.tensor([translator.words.source.encode(translator.source.tokenize(text))])
        target = torch.tensor(translator.words.target.encode(translator.target.tokenize(translation)))
        before = torch.tensor([[EOS, *target[:-1]]])
        p = torch.stack([model(source, before)[0][0].softmax(1) for model in models]).mean(0)
        expected = float(p[range(len(target)), target].log().sum())
        assert given.log_likelihood == pytest.approx(expected, abs=1e-4)
        assert given.tokens == len(target)
    assert math.isnan(long.log_likelihood)
    assert done == [2, 1]


def test_a_prefix_is_added_to_the_selected_vocabulary(tmp_path: Path) -> None:
    """Otherwise a prefix that no source token suggests could not be produced."""
    translator = load(write_small_package(tmp_path), "cpu")
    size = len(translator.words.target.vocabulary)
    translator.words.selection = VocabularySelection(NO_CANDIDATES, 0, 0, size)
    assert translator.translate("ein Hund", prefixes="Haus aus").startswith("Haus aus")
    assert "Haus" not in translator.translate("ein Hund")


def test_unknown_words_are_replaced_if_there_is_a_dictionary(tmp_path: Path) -> None:
    """The dictionary's word or a copy takes their place; without a dictionary, `<unk>` stays visible.

    The parrot attends to the same position; at the second one EOS is skipped (T34). Anyone can write a
    dictionary: what could control the terminal becomes a space.
    """
    text = "ein dog und Wuffi."
    assert parrot(tmp_path).translate([text]) == ["ein <unk> und <unk>."]
    [[best, _]] = parrot(tmp_path, {"dog": "Hund\x1b[2J"}).translate_n_best([text])
    assert best.text == "ein Hund [2J und Wuffi."
    replacements = [Replacement(1, "dog", "Hund\x1b[2J", "dictionary", True)]
    assert best.replacements == [*replacements, Replacement(3, "Wuffi", "Wuffi", "copy", False)]


def test_words_are_linked_by_attention(tmp_path: Path) -> None:
    """The parrot attends to the word that it repeats; where EOS gets more, the best word counts (T34).

    Pieces link the words that they are part of.
    """
    translator = parrot(tmp_path)
    [[best, _], [empty]] = translator.translate_n_best(["Das ist ein Haus.", ""])
    assert translator.align(best) == [(i, i) for i in range(5)]
    assert translator.align(empty) == []
    real = load(write_small_package(tmp_path), "cpu")
    [[of_pieces]] = real.translate_n_best(["ein Haus Maus"], prefixes=["Maus eins"])
    assert len(of_pieces.tokens) > len(of_pieces.words) + 1
    linked = real.align(of_pieces)
    assert {target for _, target in linked} == set(range(len(of_pieces.words)))
    assert {source for source, _ in linked} <= {0, 1, 2}


@pytest.mark.parametrize("replace", [True, False])
def test_a_prefix_stays_as_it_is_given(tmp_path: Path, replace: bool) -> None:
    """Replacement changes unknown words, but not those of a prefix, which the user has chosen."""
    translator = load(write_small_package(tmp_path), "cpu", replace=replace)
    [[found]] = translator.translate_n_best("ein Hund", prefixes="Zürich Haus")
    assert found.words[:2] == ["Zürich", "Haus"] and found.text.startswith("Zürich Haus")
    assert all(one.word > 1 for one in found.replacements)


@pytest.mark.filterwarnings("ignore:A sentence has")
def test_one_line_in_gives_one_line_out(tmp_path: Path) -> None:
    """Line i of the output must translate line i, whatever is in it, even if it is split into parts."""
    results = parrot(tmp_path, {}, limit=32).translate(STRANGE, split_sentences=False)
    assert len(results) == len(STRANGE)
    assert results[:3] == ["", "", ""]
    assert results[10].split() == ["Haus"] * 2000
    assert results[11:] == ["x" * 3000, "ein Haus."]
    assert all("\n" not in result and "\r" not in result for result in results)


@pytest.mark.filterwarnings("ignore:A sentence has")
def test_a_trained_model_gives_one_line_for_one_line(tmp_path: Path) -> None:
    """Unlike the parrot, it has pieces of unknown characters."""
    translator = load(write_small_package(tmp_path), "cpu", split_sentences=False)
    results = translator.translate([text[:300] for text in STRANGE])
    assert len(results) == len(STRANGE)
    assert results[0] == ""
    assert all("\n" not in result and "\r" not in result for result in results)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_several_processes_change_nothing(tmp_path: Path, precision: str) -> None:
    """Translations, samples, scores of given translations and their order stay the same."""
    package = write_small_package(tmp_path)
    texts = ["ein Haus.", "", "und noch ein Hund, Maus", *(text[:100] for text in STRANGE[-5:])]
    found = []
    for processes in (1, 2):
        translator = load(
            package, "cpu", batch_sentences=2, n_best=2, precision=precision, processes=processes
        )
        done: list[int] = []
        hypotheses = translator.translate_n_best(texts, keep_attention=True, on_done=done.append)
        found.append([
            [[(one.text, one.score, one.attention is not None) for one in ranked] for ranked in hypotheses],
            translator.translate(texts, prefixes=["Maus"] * len(texts)),
            translator.translate(texts, sampling=Sampling(seed=3)),
            translator.score(texts, texts[::-1]),
            sum(done),
        ])  # fmt: skip
    assert str(found[0]) == str(found[1])  # as text, because nan is the score of what does not fit
    assert found[0][-1] == len(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device 'gpu': .* Expected cpu, cuda"),
        ({"beam_size": 0}, r"beam_size: .*0"),
        ({"beam": 1}, r"mean beam_size\?"),
        ({"folders": ["one", "other"]}, r"one/package/target.tsv and .*other/package/target.tsv differ"),
        ({"folders": ["unfit"]}, r"was trained with \d+ target vocabulary entries but .*target.tsv has \d+ "),
    ],
)
def test_what_cannot_be_loaded_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """Ids of another vocabulary would give nonsense without any error; settings are those of params.yaml."""
    _, other, unfit = (write_small_package(tmp_path / name) for name in ("one", "other", "unfit"))
    text = (other / "target.tsv").read_text(encoding="utf-8")
    (other / "target.tsv").write_text(text.replace("\t1\n", "\t2\n", 1), encoding="utf-8")
    seal(other)
    size = json.loads((unfit / "model.json").read_text(encoding="utf-8"))["source_size"]
    write_model(unfit, (size, size + 1))
    names = options.get("folders", ["one"])
    with pytest.raises(ValueError, match=message):
        load(**{"device": "cpu", **options, "folders": [tmp_path / name / "package" for name in names]})
