"""Words in, words out, around a model that repeats its source."""

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from convs2s.decode.translations import Hypothesis
from convs2s.search.beam_search import BeamSearch
from tests.decode.parrot import Parrot, word_parrot, write_vocabulary


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    return write_vocabulary(tmp_path / "vocabulary")


def test_results_are_in_the_order_of_their_sentences(vocabulary: Path) -> None:
    """They are translated longest first, three at a time, and put back in order."""
    texts = "Haus", "Das ist ein Haus .", "", "ein Hund", "und", "noch eins ."
    sentences = [text.split() for text in texts]
    translator = word_parrot(vocabulary)
    found = translator.translate(sentences, keep_attention=False)
    assert [hypotheses[0].words for hypotheses in found] == sentences
    assert all(hypotheses[0].attention is None for hypotheses in found)
    model = translator.model
    assert isinstance(model, Parrot)
    assert model.batches == [(3, 6), (2, 2)]


@pytest.fixture
def pieces(tmp_path: Path) -> Hypothesis:
    """Return the translation of three words by a parrot of pieces; the second has two unknown characters."""
    translator = word_parrot(write_vocabulary(tmp_path / "bpe", ["Haus", "Maus", "aus"], pieces=8))
    [[best]] = translator.translate([["Maus", "H☃☃as", "aus"]], keep_attention=True)
    return best


def test_sources_are_words_where_tokens_are_pieces(pieces: Hypothesis) -> None:
    """Pieces of one source word all point to it."""
    assert [pieces.sources[i] for i, token in enumerate(pieces.tokens) if token == "<unk>"] == [1, 1]
    assert pieces.sources[0] == 0
    assert pieces.sources[-2] == 2


def test_an_unknown_piece_makes_its_word_unknown_once(pieces: Hypothesis) -> None:
    """A word is replaced as a whole, so two unknown pieces are one unknown word."""
    assert pieces.words == ["Maus", "H<unk><unk>as", "aus"]
    assert [(unknown.word, unknown.source) for unknown in pieces.unknowns] == [(1, 1)]


def test_attention_is_between_pieces(pieces: Hypothesis) -> None:
    """It is shown as the model computed it, with its own tokens on both sides."""
    assert pieces.attention is not None
    assert pieces.attention.target == pieces.tokens
    assert "".join(pieces.attention.source) == "Maus▁H☃☃as▁aus▁</s>"


LONG = ["Das", "ist", "ein", "Haus", ".", "Und", "noch", "eins", ",", "und", "Wuffi", "."]


def translate_long(vocabulary: Path) -> list[list[Hypothesis]]:
    """Translate a sentence of 12 words, a short one, and the long one again; a table of 6 holds 5 and EOS."""
    translator = word_parrot(vocabulary, limit=6)
    with pytest.warns(UserWarning, match="more tokens than the model's position table takes, 5"):
        return translator.translate([LONG, ["Haus"], LONG], keep_attention=True)


def test_sentences_beyond_the_position_table_are_joined_from_parts(vocabulary: Path) -> None:
    """Nothing is dropped, there is a warning, and a short sentence between two long ones keeps its place."""
    [[long], [short], [again]] = translate_long(vocabulary)
    assert long.words == [word if word not in ("Und", "Wuffi") else "<unk>" for word in LONG]
    assert long.tokens[-1] == "</s>"
    assert "</s>" not in long.tokens[:-1]
    assert short.words == ["Haus"]
    assert again.words == long.words


def test_sources_of_parts_are_words_of_the_whole_sentence(vocabulary: Path) -> None:
    """Replacement looks up the source word of an unknown word by its place in the sentence."""
    [long] = translate_long(vocabulary)[0]
    assert [(unknown.word, unknown.source) for unknown in long.unknowns] == [(5, 5), (10, 10)]
    assert long.sources[:12] == list(range(12))


def test_attention_of_parts_is_joined(vocabulary: Path) -> None:
    """Each part attends only to its own words, so the heat map has a block per part."""
    [long] = translate_long(vocabulary)[0]
    assert long.attention is not None
    weights = long.attention.weights
    assert weights.shape == (len(long.tokens), 13)
    assert weights[5].argmax() == 5  # the second part's first word
    assert weights[:5, 5:].max() == 0


@pytest.mark.parametrize(
    ("settings", "lengths", "limits"),
    [
        ({"max_length_ratio": 0.58, "max_length_extra": 1}, [50, 1], [30, 1]),  # 0.58 * 50 is below 29
        ({"max_length_ratio": 1.1, "limit": 12}, [10, 1], [11, 6]),
        (
            {"max_length_ratio": 1.2, "max_length_extra": 11.2},
            [4],
            [16],
        ),  # fairseq's 1.2 S + 10, EOS in S
        ({"max_length_ratio": 1.1, "max_length_of": "batch"}, [1, 10], [16, 16]),
    ],
)
def test_longest_lengths_follow_the_source(
    vocabulary: Path, settings: dict[str, Any], lengths: list[int], limits: list[int]
) -> None:
    """ratio * source tokens + extra, excluding EOS, limited by the position table."""
    with mock.patch.object(BeamSearch, "search", autospec=True, side_effect=BeamSearch.search) as search:
        word_parrot(vocabulary, **settings).translate([["ein"] * n for n in lengths], keep_attention=False)
    assert search.call_args.args[3] == limits


@pytest.mark.filterwarnings("ignore:A sentence has")
@pytest.mark.parametrize(
    ("settings", "source", "prefix", "words"),
    [
        ({}, "ein Hund", "Haus", "Haus Hund"),  # the parrot decides freely what follows
        ({}, "Das ist", "", "Das ist"),
        ({"max_length_ratio": 0.0, "max_length_extra": 1}, "ein", "Das ist ein", "Das ist ein"),
        ({"limit": 4}, "Das ist ein Haus und", "Hund", "Hund ist ein Haus und"),  # in parts of 3
    ],
)
def test_a_prefix_begins_the_translation(
    vocabulary: Path, settings: dict[str, Any], source: str, prefix: str, words: str
) -> None:
    """Prefixes are whole words; they begin every hypothesis, but only the first part of a long sentence.

    They may be longer than the length limit, here of one token.
    """
    translator = word_parrot(vocabulary, n_best=2, **settings)
    sentences = [["und"], source.split()]
    _, ranked = translator.translate_into(
        lambda _, hypotheses: hypotheses, sentences, keep_attention=False, prefixes=[[], prefix.split()]
    )
    assert ranked[0].words == words.split()
    assert all(one.words[:1] == prefix.split()[:1] for one in ranked if prefix)


def test_a_prefix_must_fit_the_position_table(vocabulary: Path) -> None:
    """The message quotes the prefix; EOS needs a position as well."""
    translator = word_parrot(vocabulary, limit=4)
    with pytest.raises(ValueError, match=r"'ein ein ein ein' has 4 tokens but .* position table takes 3"):
        translator.translate_into(print, [["ein"]], keep_attention=False, prefixes=[["ein"] * 4])
