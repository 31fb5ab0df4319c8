"""Characters that the model never saw, around a model that repeats its source."""

import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convs2s.decode.left_out import SourceLine, read_source
from convs2s.decode.put_back import put_back
from convs2s.decode.translations import Hypothesis, PutBack, read_hypotheses, write_hypotheses
from convs2s.package.translator import Translator
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.words.places import locate_words
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE, WORDS, word_parrot, write_vocabulary

ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
ASTRONAUT = "👩🏽\u200d🚀❤\ufe0f"
LINES = {
    # line: what the model sees
    "Das 🙂 ist ein Haus.": "Das ist ein Haus .",
    "🙂 Das ist ein Haus.": "Das ist ein Haus .",
    "🙂Das ist ein Haus.": "Das ist ein Haus .",
    "Das ist ein Haus. 🙂": "Das ist ein Haus .",
    "Das ist ein Haus 🙂.": "Das ist ein Haus .",
    "Das ist ein Haus🙂.": "Das ist ein Haus .",
    "Das ist ein Haus🙂. Das ist ein Hund.": "Das ist ein Haus . Das ist ein Hund .",
    "Das ist ein Haus. 🙂 Das ist ein Hund.": "Das ist ein Haus . Das ist ein Hund .",
    "Das ist ein Haus, 🙂 und noch eins.": "Das ist ein Haus , und noch eins .",
    "Das ist 🙂🙂🙂 ein Haus 🙂 🙂": "Das ist ein Haus",
    f"Das ist {ASTRONAUT} ein Haus.": "Das ist ein Haus .",
    f"Das{ASTRONAUT} ist ein Haus.": "Das ist ein Haus .",
    f"Das ist {ENGLAND} ein Haus.": "Das ist ein Haus .",
    f"Das ist ein Haus {ENGLAND}": "Das ist ein Haus",
    "Das ist™ ein ½ → Haus.": "Das ist ein Haus .",
    "Haus🙂Hund": "Haus Hund",
    "Das ist *ein* Haus.": "Das ist ein Haus .",
    "**Das** ist ~ein~ *Haus*.": "Das ist ein Haus .",
    "Das ist Łódź.": "Das ist .",
    "Łódź ist ein Haus.": "ist ein Haus .",
    "Das ist ein Привет Haus.": "Das ist ein Haus .",
    "Das ist ein Hαus.": "Das ist ein .",
    "Das ist ein 中文 Haus.": "Das ist ein Haus .",
    "Łódź, das ist ein Haus.": "das ist ein Haus .",
    "Das, Łódź, und ein Haus.": "Das , und ein Haus .",
    "Das ist ein Haus, Łódź.": "Das ist ein Haus .",
    "Das (Łódź) ist ein Haus.": "Das ist ein Haus .",
    "Das ist 'Łódź' und Haus.": "Das ist und Haus .",
    "Das ist Łódź, Привет, 中文 und ein Haus.": "Das ist und ein Haus .",
    "Привет, как дела? Das ist ein Haus.": "Das ist ein Haus .",
    "Das ist ein Haus. Привет, как дела?": "Das ist ein Haus .",
    "Das ist ein Haus. αlpha": "Das ist ein Haus .",
    "🙂": "",
    "中文 中文": "",
    "👍🏽 🎉  ™": "",
    "„Привет“, как дела?": "",
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """Repeats pieces of words; all their characters, and nothing else, occurred in training.

    It keeps no literals: random text has some.
    """
    text = [*WORDS, "(", ")", '"', "?", "'s"]
    words = word_parrot(write_vocabulary(tmp_path_factory.mktemp("bpe"), text, pieces=45), n_best=2)
    tokenizer = Tokenizer("de", TOKENIZE)
    return Translator(words, tokenizer, tokenizer, None, keeps_literals=False)


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_translated_as_without_them(translator: Translator, line: str) -> None:
    """The model sees the line without them; they return to their place as they were."""
    [source] = translator.read(line)
    assert source.seen == LINES[line].split() == translator.source.tokenize(" ".join(source.seen))
    assert translator.translate(line).split() == line.split()


def test_an_english_genitive_goes_with_its_name(translator: Translator) -> None:
    """Moses splits it off in English; alone it would mean "is"."""
    source = read_source(
        "Das ist Łukasz’s Haus.", Tokenizer("en", TOKENIZE).tokenize, translator.words.source
    )
    assert source.seen == ["Das", "ist", "Haus", "."]
    assert [item.text for item in source.left_out] == ["Łukasz’s"]


@given(text=st.text(alphabet="Haus Hund,. .🙂é☃中Łж1™"))
@example(text="H™.☃H")
def test_each_unknown_character_is_in_the_translation_once(translator: Translator, text: str) -> None:
    """The user must not lose a character. They keep their order, as this model changes none."""
    [best, *_] = translator.translate_n_best(text)[0]
    codec = translator.words.source
    unknown = [character for character in text if not codec.has_seen(character.strip())]
    assert [character for character in best.text if not codec.has_seen(character.strip())] == unknown
    assert best.unknown_characters == len(unknown)
    assert bool(best.put_back) == bool(unknown)


@given(text=st.text(alphabet="Haus Hund,. .🙂é☃中Łж1™("))
@example(text="ist.🙂Das! (🙂")
def test_each_seen_word_has_its_place_in_the_line(translator: Translator, text: str) -> None:
    """Links and replacements count on it, even where a text ends in a period that is a word only there."""
    [source] = translator.read(text)
    places, runs = source.locate()
    assert [source.words[place] for place in places] == source.seen
    assert [source.words[run] for run in runs] == [item.text.split()[0] for item in source.left_out]
    assert len({*places, *runs}) == len(places) + len(runs)


def test_putting_back_takes_time_in_proportion_to_the_line(translator: Translator) -> None:
    """Where each run was compared with all words of both sides, such a line took a server half a minute."""
    codec = translator.words.source
    source = read_source("und 🙂 " * 500, str.split, codec)
    tokens = codec.pieces(["und"] * 500)
    hypothesis = Hypothesis([*tokens, "</s>"], ["und"] * 500, -1.0, -1.0, [0] * len(tokens) + [-1], [])
    start = time.process_time()
    whole = put_back(source, hypothesis, codec)
    assert time.process_time() - start < 1
    assert len(whole.words) == 1000


@pytest.mark.parametrize("part", ["ein Łódź. ", "Das 🙂 "])
def test_reading_takes_time_in_proportion_to_the_line(translator: Translator, part: str) -> None:
    """Where the text before each run was tokenized anew, 10,000 characters took minutes."""

    def seconds(repeats: int) -> float:
        start = time.process_time()
        translator.read(part * repeats)
        return time.process_time() - start

    short = min(seconds(300), seconds(300))
    assert seconds(1200) < 8 * short + 0.1


@pytest.mark.parametrize(
    ("text", "words", "starts"),
    [
        ("Das ist.", ["das", "ist", "."], [0, 4, 7]),
        ('"Das" ist-ein', ["&quot;", "Das", "&quot;", "ist", "@-@", "ein"], [0, 1, 4, 6, 9, 10]),
        ("Das\u200b… ist", ["Das", "...", "ist"], [0, 3, 6]),
        ("ＤＡＳ\u3000ｉｓｔ.", ["Das", "ist", "."], [0, 4, 7]),
    ],
)
def test_words_are_located_in_their_text(text: str, words: list[str], starts: list[int]) -> None:
    """Places stay right behind words that the tokenizer has rewritten and characters that it drops."""
    assert locate_words(text, words)[0] == starts


def test_attention_decides_where_words_are_in_another_order(translator: Translator) -> None:
    """What is put back goes next to the words that it was next to, but never inside a prefix."""
    codec = translator.words.target
    line = "Haus 🙂 und Hund"
    source = read_source(line, str.split, codec)
    tokens = [*codec.pieces(["Hund", "und", "Haus"]), "</s>"]
    owners = codec.word_of_entry(tokens[:-1])
    sources = [[2, 1, 0][owner] if owner >= 0 else -1 for owner in owners] + [2]
    hypothesis = Hypothesis(tokens, ["Hund", "und", "Haus"], -1.0, -1.0, sources, [])
    found = put_back(source, hypothesis, codec, list)
    assert found.words == ["Hund", "und", "Haus", "🙂"]
    assert found.put_back == [PutBack(3, 1, "🙂")]
    assert found.tokens == tokens
    # Indices are those of the whole line: of the four words, the model saw 0, 2 and 3.
    assert found.sources == [{0: 0, 1: 2, 2: 3, -1: -1}[i] for i in sources]
    line = "Haus und 🙂 Hund"
    source = read_source(line, str.split, codec)
    assert put_back(source, hypothesis, codec, list).words == ["Hund", "und", "🙂", "Haus"]
    begun = read_source("Hund und Haus", str.split, codec)
    assert put_back(source, hypothesis, codec, list, begun).words == ["Hund", "und", "Haus", "🙂"]


def test_what_touches_a_word_on_its_right_goes_with_it(translator: Translator) -> None:
    """A currency sign stays with its number, wherever the number moves."""
    codec = translator.words.target
    source = read_source("Haus und 🙂Hund", str.split, codec)
    words = ["Hund", "Haus", "und"]
    tokens = [*codec.pieces(words), "</s>"]
    owners = codec.word_of_entry(tokens[:-1])
    sources = [[2, 0, 1][owner] if owner >= 0 else -1 for owner in owners] + [2]
    hypothesis = Hypothesis(tokens, words, -1.0, -1.0, sources, [])
    assert put_back(source, hypothesis, codec, list).words == ["🙂Hund", "Haus", "und"]


def test_sentences_start_where_the_model_starts_them(translator: Translator) -> None:
    """An emoji before it does not take the capital of the first word, as it is not a word."""
    codec = translator.words.target
    tokenizer = Tokenizer("de", TOKENIZE.model_copy(update={"truecase": True}))
    source = read_source("🙂 das ist", tokenizer.words, codec)
    [[found, *_]] = translator.words.translate([source.seen], keep_attention=False)
    best = put_back(source, found, codec, tokenizer.restore_case)
    assert tokenizer.detokenize(best.words) == "🙂 Das ist"


def test_text_that_composes_to_what_is_known_is_known(translator: Translator, tmp_path: Path) -> None:
    """Text from macOS has é as e and an accent; it is no unknown accent."""
    words = word_parrot(write_vocabulary(tmp_path, [*WORDS, "Café"], pieces=45))
    tokenizer = Tokenizer("de", TOKENIZE)
    decomposed = unicodedata.normalize("NFD", "Das ist ein Café.")
    [[best, *_]] = Translator(words, tokenizer, tokenizer, None).translate_n_best(decomposed)
    assert (best.text, best.unknown_characters) == ("Das ist ein Café.", 0)
    assert "Café" in translator.translate("Das ist ein Café.")


def test_words_of_raw_text_lose_no_punctuation(tmp_path: Path) -> None:
    """In raw text, punctuation is part of a word; if the word is left out, it goes to the word before."""
    folder = write_vocabulary(tmp_path, [*WORDS, "Haus.", "Hund."], pieces=45)
    tokenizer = Tokenizer("de", TOKENIZE.model_copy(update={"tokenizer": "spaces"}))
    translator = Translator(word_parrot(folder), tokenizer, tokenizer, None)
    lines = {
        "Das ist ein Łódź.": "Das ist ein.",
        "Das ist ein Haus🙂.": "Das ist ein Haus.",
        "Das ist ein Haus 🙂. Das ist ein Hund.": "Das ist ein Haus. Das ist ein Hund.",
    }
    for line, seen in lines.items():
        assert translator.read(line)[0].seen == seen.split()
        assert translator.translate(line) == line
    # This tokenizer keeps a no-break space; the model has never seen one.
    assert translator.read(".\u00a0,")[0] == SourceLine([".", ","])
    assert translator.translate("Das ist ein\u00a0Haus.") == "Das ist ein Haus."


def test_prefixes_keep_theirs_and_do_not_repeat_them(translator: Translator) -> None:
    """The model begins with the rest of the prefix; what the prefix has is not put back again."""
    line = "ein Haus 🙂 und ☃"
    [[best, *_]] = translator.translate_n_best(line, prefixes="Ein ☃ Łódź ein")
    assert best.text == "Ein ☃ Łódź ein Haus 🙂 und"
    assert translator.align(best)[-2:] == [(2, 5), (3, 6)]
    [[best, *_], [nothing, *_]] = translator.translate_n_best(["🙂 ☃", ""], prefixes=["Das ist,", "Das"])
    assert (best.text, translator.align(best)) == ("Das ist, 🙂 ☃", [(0, 3), (1, 4)])
    assert nothing.text == ""


def test_given_translations_are_scored_without_them(translator: Translator) -> None:
    """So the score of a line does not depend on an emoji that both sides have."""
    [plain] = translator.score("ein Hund", "ein Hund")
    [found] = translator.score("ein 🙂 Hund", "ein 🙂 Hund ☃")
    assert found == plain._replace(unknown_characters=3)


def test_links_and_sources_are_of_the_whole_line(translator: Translator) -> None:
    """What was put back is linked to what it comes from, so every word of the line has its place."""
    [[best, *_]] = translator.translate_n_best("Das 🙂 Haus Łódź .")
    assert best.words == ["Das", "🙂", "Haus", "Łódź", "."]
    assert translator.align(best) == [(i, i) for i in range(5)]
    assert set(best.sources) <= {0, 2, 4, 5}


def test_files_of_hypotheses_hold_what_was_put_back(translator: Translator, tmp_path: Path) -> None:
    """Evaluation reads translations from these files; a line without unknown characters has no such field."""
    sources = [*translator.read(["Das 🙂 Haus", "Das Haus"])]
    found = translator.words.translate([source.seen for source in sources], keep_attention=False)
    whole = [
        (source.words, [put_back(source, one, translator.words.target) for one in ranked])
        for source, ranked in zip(sources, found, strict=True)
    ]
    write_hypotheses(tmp_path / "h.jsonl", whole)
    first, second = (tmp_path / "h.jsonl").read_text(encoding="utf-8").splitlines()
    assert "put_back" in first
    assert "put_back" not in second and "places" not in second and "unknown_characters" not in second
    read = list(read_hypotheses(tmp_path / "h.jsonl"))
    assert [hypotheses[0].put_back for _, hypotheses in read] == [[PutBack(1, 1, "🙂")], []]
    assert read[0][0] == ["Das", "🙂", "Haus"]


def test_only_entries_that_training_never_needed_are_avoided(tmp_path: Path) -> None:
    """Vocabularies of words are limited, so that `<unk>` is trained: §4.3 replaces it."""
    words = Codec.load(write_vocabulary(tmp_path / "words"), "source")
    assert words.has_seen("Łódź 🙂")
    pieces = Codec.load(write_vocabulary(tmp_path / "pieces", WORDS, pieces=40), "source")
    assert pieces.has_seen("".join(WORDS))
    assert not pieces.has_seen("🙂") and not pieces.has_seen("Dasß")
    assert not pieces.has_seen("\u2581")  # it is the mark of a word's end, and no character of the text
