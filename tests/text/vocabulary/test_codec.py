"""Words to ids and back."""

from collections import Counter
from pathlib import Path

import pytest

from convs2s.ids.vocabulary import EOS, UNK
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.learning import write_codecs
from convs2s.text.vocabulary.segmentation import Unigram

ENGLISH = Counter({"low": 50, "lower": 20, "newest": 60, "widest": 30, "station": 9, "_": 1})
GERMAN = Counter({"niedrig": 50, "Straßenbahn": 40, "neueste": 60, "weiteste": 30, "a\u00a0b\u3000": 2})


@pytest.fixture
def joint_folder(tmp_path: Path) -> Path:
    write_codecs(tmp_path, (ENGLISH, GERMAN), "bpe", True, (60, 60))
    return tmp_path


def test_each_side_has_its_own_vocabulary(joint_folder: Path) -> None:
    """T26: pieces are learned jointly, but each side's entries occur in that side's text."""
    source = Codec.load(joint_folder, "source").vocabulary.entries
    target = Codec.load(joint_folder, "target").vocabulary.entries
    assert {"l", "o"} <= set(source)
    assert "ß" not in "".join(source)
    assert "ß" in "".join(target)
    assert "o" not in "".join(target)


def test_entries_have_their_counts_and_the_most_frequent_comes_first(joint_folder: Path) -> None:
    """Vocabulary selection takes the first entries for the most frequent ones (§5.4)."""
    lines = (joint_folder / "source.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    counts = [int(line.split("\t")[1]) for line in lines]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) >= sum(ENGLISH.values())


def test_pieces_of_the_other_side_are_split_into_entries(joint_folder: Path) -> None:
    """A German word's pieces are not English entries, but most of its characters are."""
    codec = Codec.load(joint_folder, "source")
    pieces = codec.pieces(["neueste"])
    assert "".join(pieces) == "neueste\u2581"
    ids = codec.vocabulary.ids(pieces)
    assert [piece for piece, id_ in zip(pieces, ids, strict=True) if id_ == UNK] == ["u"]
    assert codec.decode(ids) == ["ne<unk>este"]


def owners_of_pieces(codec: Codec, words: list[str]) -> list[int]:
    """Return the word of each piece; -1 for a lone mark, which spells nothing."""
    pairs = zip(codec.pieces(words), codec.word_of_piece(words), strict=True)
    return [-1 if piece == "\u2581" else owner for piece, owner in pairs]


@pytest.mark.parametrize(
    ("words", "decoded"),
    [
        (["☃"], ["<unk>"]),
        (["low☃", "low"], ["low<unk>", "low"]),
        (["☃low"], ["<unk>low"]),
        (["☃☃", "☃"], ["<unk><unk>", "<unk>"]),
        (["\x00", "\u2585"], ["<unk>", "<unk>"]),
        (["low\u2581low"], ["low_low"]),
        ([], []),
    ],
)
def test_unknown_characters_are_unknown_pieces(
    joint_folder: Path, words: list[str], decoded: list[str]
) -> None:
    """Each such character is a piece; the word's end is kept, so the number of words does not change."""
    codec = Codec.load(joint_folder, "source")
    assert codec.decode(codec.encode(words)) == decoded
    assert codec.word_of_entry(codec.pieces(words)) == owners_of_pieces(codec, words)


def test_two_word_ends_in_a_row_make_no_empty_word(joint_folder: Path) -> None:
    """A model may write any pieces; an empty word would be two spaces in the text."""
    codec = Codec.load(joint_folder, "source")
    end = codec.vocabulary.ids(["\u2581"])
    assert end != [UNK]
    assert codec.decode([*end, *end, *codec.encode(["low"])]) == ["low"]


def test_a_run_of_unknown_characters_takes_linear_time(joint_folder: Path) -> None:
    """One line of emoji must not hold up a whole corpus."""
    codec = Codec.load(joint_folder, "source")
    assert codec.encode(["☃" * 100_000]).count(UNK) == 100_000


@pytest.fixture
def word_folder(tmp_path: Path) -> Path:
    write_codecs(tmp_path, (ENGLISH, GERMAN), "word", False, (3, 4))
    return tmp_path


def test_a_word_vocabulary_has_the_most_frequent_words(word_folder: Path) -> None:
    """The sizes are those asked for, beside the three special entries."""
    codec = Codec.load(word_folder, "source")
    assert codec.vocabulary.entries == ["newest", "low", "widest"]
    assert len(Codec.load(word_folder, "target").vocabulary) == 4 + 3


def test_a_word_that_the_vocabulary_lacks_is_unknown(word_folder: Path) -> None:
    """U+2581 has no meaning there: it is a word like any other."""
    codec = Codec.load(word_folder, "source")
    assert codec.encode(["low", "lower", "\u2581"]) == [4, UNK, UNK, EOS]
    assert codec.decode([4, UNK, 3, EOS]) == ["low", "<unk>", "newest"]


def test_words_are_their_own_pieces(word_folder: Path) -> None:
    """So piece i is word i, known or not."""
    codec = Codec.load(word_folder, "source")
    assert codec.pieces(["low", "☃"]) == ["low", "☃"]
    assert codec.word_of_piece(["low", "☃"]) == codec.word_of_entry(["low", "☃"]) == [0, 1]


@pytest.mark.parametrize(
    ("kind", "sizes", "message"),
    [
        ("word", (6, 6), r"vocabulary\.target_size is 6 but .* only 5 different words"),
        ("bpe", (30, 9_000), r"vocabulary\.target_size is 9,000 but .* useful pieces"),
        ("bpe", (9, 40), r"vocabulary\.source_size is 9 but .* need (\d+) pieces.*at least \1"),
        ("sentencepiece", (200, 400), r"vocabulary\.source_size is 200 but .* need 2\d\d pieces"),
        ("sentencepiece", (9_000, 400), r"vocabulary\.source_size is 9,000 but .* useful pieces.*at most"),
    ],
)
def test_too_large_a_vocabulary_names_its_parameter(
    tmp_path: Path, kind: str, sizes: tuple[int, int], message: str
) -> None:
    """The message names the parameter of the side to change."""
    with pytest.raises(ValueError, match=message):
        write_codecs(tmp_path, (ENGLISH, GERMAN), kind, False, sizes)  # type: ignore[arg-type]


@pytest.fixture
def raw_folder(tmp_path: Path) -> Path:
    counts = (ENGLISH + Counter({"(low),": 3}), GERMAN)
    write_codecs(tmp_path, counts, "sentencepiece", True, (285, 285))
    return tmp_path


ANY_TEXT = [["„Straßenbahn“,", "(lower)"], ["日本語", "\U0001f642", "<unk>", "<0x41>"], []]


@pytest.mark.parametrize("side", ["source", "target"])
def test_any_text_comes_back_from_sentencepiece(raw_folder: Path, side: str) -> None:
    """Rare and foreign characters are written in bytes, so no text has an unknown piece."""
    codec = Codec.load(raw_folder, side)
    for words in ANY_TEXT:
        ids = codec.encode(words)
        assert UNK not in ids
        assert codec.decode(ids) == words


@pytest.mark.parametrize("side", ["source", "target"])
def test_each_piece_of_sentencepiece_has_its_word(raw_folder: Path, side: str) -> None:
    """Links and replacement go by words, so every id but EOS must belong to one."""
    codec = Codec.load(raw_folder, side)
    for words in ANY_TEXT:
        assert len(codec.word_of_piece(words)) == len(codec.encode(words)) - 1
        assert codec.word_of_entry(codec.pieces(words)) == owners_of_pieces(codec, words)


@pytest.mark.parametrize("side", ["source", "target"])
def test_bytes_that_are_no_character_are_read(raw_folder: Path, side: str) -> None:
    """A model may write any bytes: here the first half of a character, then an A."""
    codec = Codec.load(raw_folder, side)
    ids = codec.vocabulary.ids(["<0xC3>", "<0x41>"])
    assert UNK not in ids
    assert codec.decode(ids) == ["\ufffdA"]


def test_bytes_that_no_character_had_in_training_are_not_known(raw_folder: Path) -> None:
    """They are entries, but none was trained: a model that never saw an emoji knows none of its bytes."""
    source = Codec.load(raw_folder, "source")
    target = Codec.load(raw_folder, "target")
    assert source.has_seen("".join(ENGLISH))
    assert target.has_seen("".join(GERMAN))
    assert not target.has_seen("\U0001f642")


def test_a_side_knows_only_the_characters_of_its_own_text(raw_folder: Path) -> None:
    """The vocabulary is joint, but "(" is only in the source's text: the target's training lacks it."""
    assert Codec.load(raw_folder, "source").has_seen("(low),")
    assert not Codec.load(raw_folder, "target").has_seen("(")


def test_pieces_of_sentencepiece_are_those_of_whole_lines(raw_folder: Path) -> None:
    """No piece spans a space, so segmenting word by word must equal segmenting the line."""
    model = Unigram((raw_folder / "source.model").read_bytes())
    line = "low newest (low), station widest"
    assert [piece for word in line.split() for piece in model.pieces(word)] == model.pieces(line)
