"""Capitals are lowered for the model and raised in its translation, with a model that repeats its source."""

import json
from collections import Counter
from pathlib import Path

import pytest

from convs2s.decode import capitals
from convs2s.model.description import seal
from convs2s.package.translator import Translator, load
from convs2s.text.vocabulary.learning import write_codecs
from convs2s.text.words.orthography import upper
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE, word_parrot
from tests.package.small_package import write_small_package

COUNTS = {
    "the": 900, "The": 200, "a": 500, "i": 1, "I": 800, "do": 90, "Do": 40, "not": 80, "open": 70,
    "old": 60, "house": 50, "save": 30, "Save": 3, "changes": 20, "brown": 15, "sold": 12, "Tom": 400,
    "TV": 30, "is": 300, ".": 2000, "!": 99, "and": 99, "us": 99, "in": 99, "straße": 9, "οδός": 7,
    "no": 40, "No": 20, "it": 30, "It": 25, "σοφος": 2, "ısı": 6, "izin": 5, "подъезд": 20,
}  # fmt: skip
LETTERS = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ДЕЗОП"]
"""Pieces that are also there, in which any Latin word can be written."""


def make_parrot(folder: Path, language: str = "en", *, pieces: bool = False, **changes: object) -> Translator:
    """Return a translator that repeats what the model sees: words, or pieces of at most a word."""
    folder.mkdir(exist_ok=True)
    counts = Counter(COUNTS) + Counter(dict.fromkeys(LETTERS if pieces else (), 1))
    size = 150 if pieces else len(counts)
    write_codecs(folder, (counts, counts), "bpe" if pieces else "word", joint=pieces, sizes=(size, size))
    tokenizer = Tokenizer(language, TOKENIZE.model_copy(update=changes))
    return Translator(word_parrot(folder), tokenizer, tokenizer, {})


@pytest.mark.parametrize(
    ("text", "seen", "translated"),
    [
        ("DO NOT OPEN THE OLD HOUSE!", "Do not open the old house !", "DO NOT OPEN THE OLD HOUSE!"),
        ("THE TV IS OLD. TOM AND I", "The TV is old . Tom and I", "THE TV IS OLD. TOM AND I"),
        ("THE USA AND THE HOUSE", "The USA and the house", "THE USA AND THE HOUSE"),
        ("US&A IS OLD", "US & A is old", "US & A IS OLD"),
        ("OLD&NOT IS THE OLD HOUSE", "OLD & NOT is the old house", "OLD & NOT IS THE OLD HOUSE"),
        ("The DO&NOT house", "The DO & NOT house", "The DO & NOT house"),
        ("DO NOT open the house.", "Do not open the house .", "DO NOT open the house."),
        ("The house is in, NO!", "The house is in , no !", "The house is in, NO!"),
        ("The house is NOT old.", "The house is not old .", "The house is NOT old."),
        ("The Old House Is Sold", "The old house is sold", "The old house is sold"),
        ("The NATO House", "The NATO house", "The NATO house"),
        ("The Old House is NOT Sold", "The old house is not sold", "The old house is NOT sold"),
        ("Save Changes", "Save changes", "Save changes"),
        ("ｓａｖｅ　ＣＨＡＮＧＥＳ！", "save changes !", "save CHANGES!"),
    ],
)
def test_text_in_capitals_is_a_normal_sentence_to_the_model(
    tmp_path: Path, text: str, seen: str, translated: str
) -> None:
    """It has learned no others. The model repeats its source, so what was in capitals is so again.

    Words have the case that the vocabulary has, as TV and Tom; German titles, for example, are not in title
    case, so a title stays as the model writes it.
    """
    translator = make_parrot(tmp_path)
    [[best, *_]] = translator.translate_n_best(text)
    assert translator.read(text)[0].seen == seen.split()
    assert best.text == translated


@pytest.mark.parametrize(
    "text",
    [
        "", "TV", "I", "A", "The TV is old.", "Tom is in the US.", "NATO is old.", "NATO", "USA", "HTML",
        "Tom Brown", "The NATO Tom is in", "Is it Tom Brown in the house?", "The IT is old.",
        "The NY is old.", "The house is sold.", "I!",
        "1,000 £", "今日はNHKを見た", "מה שלומך", "สวัสดี", "გამარჯობა", "هذا البيت",
    ],
)  # fmt: skip
@pytest.mark.parametrize("pieces", [False, True])
def test_other_text_is_unchanged(tmp_path: Path, text: str, pieces: bool) -> None:
    """Acronyms, names and sentences with them, single letters, and scripts without case."""
    translator = make_parrot(tmp_path, pieces=pieces)
    as_written = Translator(translator.words, translator.source, translator.target, {}, capitals=False)
    assert translator.read(text) == as_written.read(text)


def test_rare_entries_of_two_letters_are_no_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the ends of words, such as ny, so that NY is as it is written."""
    translator = make_parrot(tmp_path)
    text = "THE OLD HOUSE AND US"
    assert translator.read(text)[0].seen == ["The", "old", "house", "and", "us"]
    monkeypatch.setattr(capitals, "SHORT_RANK", 0)
    assert translator.read(text)[0].seen == ["The", "old", "house", "and", "US"]
    assert translator.read("I US")[0].seen == ["I", "US"]


@pytest.mark.parametrize(("language", "second"), [("en", "changes"), ("de", "Changes")])
def test_only_languages_with_common_nouns_in_lowercase_have_titles(
    tmp_path: Path, language: str, second: str
) -> None:
    """In German, "Haben Sie Geld?" has as many capitals as a title."""
    assert make_parrot(tmp_path, language).read("Save Changes")[0].seen == ["Save", second]


@pytest.mark.parametrize("change", ["lowercase", "truecase"])
def test_models_with_a_case_of_their_own_read_as_before(tmp_path: Path, change: str) -> None:
    """Their tokenizers change case, as they did in training."""
    translator = make_parrot(tmp_path, "en", **{change: True})
    text = "THE OLD HOUSE"
    assert translator.read(text)[0].seen == translator.source.tokenize(text)


@pytest.mark.parametrize(
    ("language", "text", "lowered"),
    [
        ("de", "DIE STRASSE", "DIE STRASSE"),
        ("tr", "ISI İZİN", "ısı izin"),
        ("tr", "ISI IZIN", "ısı IZIN"),
        ("el", "ΣΟΦΟΣ ΟΔΟΣ", "σοφος ΟΔΟΣ"),
    ],
)
def test_lowercase_is_that_of_the_language(tmp_path: Path, language: str, text: str, lowered: str) -> None:
    """What the vocabulary does not know in lowercase stays: capitals do not say where ß was."""
    assert " ".join(make_parrot(tmp_path, language).read(text)[0].seen) == lowered


def test_capitals_that_no_training_text_had_are_lowered(tmp_path: Path) -> None:
    """No Russian word begins with Ъ, so a model may know the small letter only, and would copy the word."""
    translator = make_parrot(tmp_path, "ru", pieces=True)
    [[best, *_]] = translator.translate_n_best("ПОДЪЕЗД is old")
    assert translator.read("ПОДЪЕЗД is old")[0].seen == ["Подъезд", "is", "old"]
    assert (best.text, best.unknown_characters) == ("ПОДЪЕЗД is old", 0)
    as_written = Translator(translator.words, translator.source, translator.target, {}, capitals=False)
    assert as_written.read("ПОДЪЕЗД is old")[0].seen == ["is", "old"]


@pytest.mark.parametrize(
    ("language", "text", "raised"),
    [
        ("de", "große Straße", "GROSSE STRASSE"),
        ("tr", "ısı izin", "ISI İZİN"),
        ("el", "ο δρόμος, προϊόν", "Ο ΔΡΟΜΟΣ, ΠΡΟΪΟΝ"),
        ("ka", "გამარჯობა", "გამარჯობა"),
        ("fr", "l’été", "L’ÉTÉ"),
        ("ja", "東京 tv", "東京 TV"),
    ],
)
def test_capitals_are_those_of_the_language(language: str, text: str, raised: str) -> None:
    """German has no common capital ß, Turkish two letters i; Greek capitals have no accents."""
    assert upper(text, language) == raised


def test_what_is_put_back_keeps_its_case(tmp_path: Path) -> None:
    """A name in unknown letters, or a mark, is not the model's."""
    translator = make_parrot(tmp_path, pieces=True)
    [[best, *_]] = translator.translate_n_best("DO NOT OPEN Łódź ☂ THE HOUSE")
    assert best.text == "DO NOT OPEN Łódź ☂ THE HOUSE"
    assert "house▁" in best.tokens


def test_a_text_with_a_prefix_and_a_pair_to_score_stay_as_they_are(tmp_path: Path) -> None:
    """The prefix says how the translation is written, and a score is one of the text that is given."""
    translator = make_parrot(tmp_path)
    [[best, *_]] = translator.translate_n_best("TV IS OLD", prefixes="TV")
    assert best.tokens[0] == "TV" and "old" not in best.tokens
    [[best, *_]] = translator.translate_n_best("TV IS OLD", prefixes="")
    assert "old" in best.tokens
    of_pieces = make_parrot(tmp_path / "pieces", pieces=True)
    [given] = of_pieces.score("OLD HOUSE", "OLD HOUSE")
    assert given.log_likelihood == pytest.approx(0, abs=1e-4)


def test_capitals_can_be_left_as_they_are(tmp_path: Path) -> None:
    """For a model whose training text had them; this one saw no capital letters."""
    package = write_small_package(tmp_path)
    as_written = load(package, "cpu", capitals=False)
    assert as_written.read("ein HAUS")[0].seen == ["ein"]
    assert load(package, "cpu").read("ein HAUS")[0].seen == ["ein", "haus"]


def test_text_that_is_already_tokenized_stays_as_it_is_unless_told_otherwise(tmp_path: Path) -> None:
    """Both of what is given counts: capitals and literals."""
    package = write_small_package(tmp_path)
    settings = json.loads((package / "tokenizer.json").read_text(encoding="utf-8"))
    settings["tokenize"]["tokenizer"] = "none"
    (package / "tokenizer.json").write_text(json.dumps(settings), encoding="utf-8")
    seal(package)
    text = "ein HAUS {count}"
    by_default = load(package, "cpu").read(text)[0]
    assert by_default.seen == ["ein", "count"] and not by_default.hidden
    asked = load(package, "cpu", capitals=True, keep_literals=True).read(text)[0]
    assert asked.seen == ["ein", "haus"] and [literal.text for literal in asked.hidden] == ["{count}"]
