"""Segmentation for imported models equals that of subword-nmt and sentencepiece."""

import io
import json
from pathlib import Path

import pytest
import sentencepiece

from convs2s.ids.vocabulary import EOS, UNK
from convs2s.text.vocabulary.codec import CODES, IMPORTED_MODEL, Codec
from convs2s.text.vocabulary.subword_nmt import read_codes

TEXT = ["low low low low low lower lower newest newest newest newest newest newest widest widest widest"] * 3


def folder_of(folder: Path, kind: str, entries: list[str], name: str, content: bytes) -> Path:
    """Write the files that the codec of an imported model reads."""
    for side in ("source", "target"):
        rows = "".join(f"{entry}\t1\n" for entry in entries)
        (folder / f"{side}.tsv").write_text(rows, encoding="utf-8", newline="\n")
    (folder / "segmentation.json").write_text(json.dumps({"kind": kind}), encoding="utf-8")
    (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def subwords(tmp_path: Path) -> Codec:
    """Return a codec with four merges: l o -> lo, lo w</w> -> low, e s -> es, es t</w> -> est."""
    pytest.importorskip("subword_nmt", reason="needs the package subword-nmt")
    codes = b"#version: 0.2\nl o\nlo w</w>\ne s\nes t</w>\n"
    entries = ["low", "lo@@", "w@@", "e@@", "n@@", "est", "r"]
    return Codec.load(folder_of(tmp_path, "subword-nmt", entries, CODES, codes), "source")


def test_words_are_segmented_by_subword_nmt(subwords: Codec) -> None:
    """By hand: merges apply in their order, and the rest stays characters."""
    assert subwords.pieces(["low", "lower", "newest"]) == [
        "low", "lo@@", "w@@", "e@@", "r", "n@@", "e@@", "w@@", "est",
    ]  # fmt: skip
    assert subwords.word_of_piece(["low", "lower"]) == [0, 1, 1, 1, 1]
    assert subwords.encode(["low", "lower"]) == [3, 4, 5, 6, 9, EOS]


def test_a_piece_that_the_dictionary_lacks_is_unknown_as_a_whole(subwords: Codec) -> None:
    """Its characters may be entries, but training had `<unk>` there, so the model has seen such words."""
    assert subwords.pieces(["wew"]) == ["w@@", "e@@", "w"]
    assert subwords.encode(["wew"]) == [5, 6, UNK, EOS]
    assert subwords.has_seen("wew☃")


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([4, 9, 3, EOS], ["lor", "low"]),
        ([4, 4], ["lolo"]),  # a piece that should go on ends the sentence
        ([4, UNK, 3], ["lo<unk>", "low"]),
        ([], []),
    ],
)
def test_pieces_of_subword_nmt_are_joined_as_in_fairseq(
    subwords: Codec, ids: list[int], words: list[str]
) -> None:
    """fairseq removes "@@ ", also at the end and before an unknown word."""
    assert subwords.decode(ids) == words


def sentencepiece_model() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=model, vocab_size=20, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


def test_words_are_segmented_by_sentencepiece_as_whole_lines_are(tmp_path: Path) -> None:
    """sentencepiece's default models mark the start of words; pieces are unknown as a whole."""
    program = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model())
    missing = max(program.encode(TEXT[0], out_type=str), key=len)
    entries = [program.id_to_piece(i) for i in range(3, program.get_piece_size())]
    entries.remove(missing)
    codec = Codec.load(
        folder_of(tmp_path, "sentencepiece", entries, IMPORTED_MODEL, sentencepiece_model()), "source"
    )
    for line in (TEXT[0], "lowest newest wider slow"):
        pieces = program.encode(line, out_type=str)
        assert codec.pieces(line.split()) == pieces
        assert codec.encode(line.split())[:-1] == codec.vocabulary.ids(pieces)
        known = [piece for piece in pieces if piece in codec.vocabulary]
        wanted = "".join(known).replace("\u2581", " ").split()
        assert codec.decode(codec.vocabulary.ids(known)) == wanted
    assert codec.vocabulary.ids([missing]) == [UNK]
    assert codec.has_seen("☃")


@pytest.mark.parametrize(
    ("content", "line"), [("#version: 0.2\na b\na b c\n", "3.*a b c"), ("the 1234\nof\n", "2.*of"), ("", "1")]
)
def test_invalid_codes_are_refused(tmp_path: Path, content: str, line: str) -> None:
    """The package itself would exit the whole program."""
    pytest.importorskip("subword_nmt", reason="needs the package subword-nmt")
    (tmp_path / CODES).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"bpe\.codes: .*invalid line {line}(.|\n)*Expected codes"):
        read_codes(tmp_path / CODES)
