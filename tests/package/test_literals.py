"""Literals in translations, around a model that repeats its source."""

from collections.abc import Iterator

import pytest

from convs2s.package.translator import Translator
from convs2s.text.words.tokenization import OBJECT, Tokenizer
from tests.decode.parrot import TOKENIZE, WORDS, word_parrot, write_vocabulary
from tests.text.words.test_literals import LITERALS

SENTENCES = [
    "{} ist ein Haus.", "Das {} ist ein Haus.", "Das ist ein Haus {}.", "Das ist ein Haus. {}",
    "Das ({}) ist ein Haus.", "Das ist {}, und noch eins.", "{} ist {} und noch {}.", "{}", "{} {}",
    "{}, {}! Hund", "- Das {} ist", "2. Haus", "12.5",
    f"Das {OBJECT} ist {{}} ein {OBJECT} Haus.", "Das {} 🙂 ist ein Haus 🙂 {}.", "Łódź ist {}.",
]  # fmt: skip


@pytest.fixture(scope="module")
def translators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Translator, Translator]]:
    """Both repeat pieces of words; one keeps literals. Training had their ASCII characters."""
    text = [*WORDS, "(", ")", *map(chr, range(ord("!"), ord("~") + 1))]
    words = word_parrot(write_vocabulary(tmp_path_factory.mktemp("bpe"), text, pieces=120), n_best=2)
    tokenizer = Tokenizer("de", TOKENIZE)
    yield (
        Translator(words, tokenizer, tokenizer, None),
        Translator(words, tokenizer, tokenizer, None, keeps_literals=False),
    )


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_literal_is_in_its_place_once_byte_for_byte(
    translators: tuple[Translator, Translator], sentence: str
) -> None:
    """The model does not see it, and it returns as it was, also white space, quotes and references in it."""
    texts = [sentence.replace("{}", literal) for literal in [*LITERALS, "{{ a  &quot;b&quot; @-@ }}"]]
    assert translators[0].translate(texts) == texts
    for source in translators[0].read(texts):
        assert not any(set("<>{}%/@#\\[]") & set(word) for word in source.seen)


def test_no_space_comes_between_punctuation_and_a_literal(translators: tuple[Translator, Translator]) -> None:
    """A footnote stays at its sentence, the end of a template's block at its text."""
    texts = ["Das ist ein Haus.[2] Das ist ein Hund![3]", "{% if x %}Das ist ein Haus.{% endif %}", "{x}.{y}"]
    texts += ["**Das:** ist ein *Haus*.", "(**Das**) ist ~~ein~~ Haus.", "![Haus](ein.png) ist [ein](#x)."]
    assert translators[0].translate(texts) == texts


def test_literals_are_no_unknown_characters(translators: tuple[Translator, Translator]) -> None:
    """They are no fault of the text; objects and emoji in it still count."""
    text = f"Das https://example.com/Łódź 🙂 ist {OBJECT} {{count}}."
    [[translation, *_]] = translators[0].translate_n_best(text)
    assert translation.unknown_characters == 2
    assert "https://example.com/Łódź" in translation.words
    assert [item.text for item in translation.put_back] == [
        "https://example.com/Łódź",
        "🙂",
        OBJECT,
        "{count}",
    ]


def test_a_prefix_does_not_repeat_its_literals(translators: tuple[Translator, Translator]) -> None:
    """What the prefix has already said is not said again."""
    text = "Das %s ist {count} ein Haus."
    assert translators[0].translate(text, prefixes="Das %s") == text
    assert translators[0].translate(text, prefixes="") == text


def test_alignments_and_scores_are_of_the_same_words(translators: tuple[Translator, Translator]) -> None:
    """A literal is a word of both sides; the score is that of what the model saw."""
    translator = translators[0]
    text = "Das {{ user.name }} ist ein Haus."
    [[translation, *_]] = translator.translate_n_best(text)
    [source] = translator.read(text)
    assert source.words == translation.words == ["Das", "{{ user.name }}", "ist", "ein", "Haus", "."]
    assert translator.align(translation) == [(i, i) for i in range(6)]
    [given] = translator.score(text, text)
    assert given.log_likelihood == pytest.approx(translation.log_likelihood)


def test_a_translator_can_be_told_to_translate_them(translators: tuple[Translator, Translator]) -> None:
    """Then the model sees all of it, as in version 1.1."""
    text = "Das {count} ist ein Haus ?"
    assert translators[1].read(text)[0].seen == translators[1].source.tokenize(text)
    assert translators[1].read(text)[0].left_out == []
