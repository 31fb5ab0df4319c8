"""`convs2s import-fairseq` with BPE codes and sentencepiece models: words in, words out."""

import io
import sys
from pathlib import Path

import pytest
import sentencepiece

from convs2s.package.translator import load
from convs2s.text.vocabulary.vocabulary import EOS
from tests.commands.importing import failed, settings
from tests.golden import import_command, write_checkpoint, write_dictionaries


def test_bpe_codes_are_applied_and_undone(tmp_path: Path) -> None:
    """Text goes in and comes out in words, though the model works in pieces."""
    pytest.importorskip("subword_nmt", reason="needs the package subword-nmt")
    source, target = write_dictionaries(tmp_path)
    rows = source.read_text(encoding="utf-8").split("\n")
    source.write_text("\n".join(["th@@ 9", "e 9", *rows[2:]]), encoding="utf-8")
    text = target.read_text(encoding="utf-8")
    target.write_text("".join(line.replace(" ", "@@ ", 1) + "\n" for line in text.split("\n") if line))
    (tmp_path / "codes").write_text("#version: 0.2\nt h\n", encoding="utf-8")
    file = write_checkpoint(tmp_path / "model.pt", "plain", source_lang="fr", target_lang="it")
    options = ("--bpe-codes", str(tmp_path / "codes"), "--tokenizer", "moses", "--aggressive-hyphens")
    assert import_command(file, (source, target), tmp_path / "model", *options) == 0
    translator = load(tmp_path / "model", "cpu")
    assert translator.words.source.encode(["the"]) == [3, 4, EOS]  # fairseq's first two words
    [translation] = translator.translate(["the the-the"])
    [[best]] = translator.translate_n_best(["the the-the"])
    assert [token for token in best.tokens if token.endswith("@@")]
    assert "@@" not in translation.replace("@-@", "")
    assert translator.source.tokenize("the-the") == ["the", "@-@", "the"]
    found = settings(tmp_path / "model")
    assert (found["source_language"], found["target_language"]) == ("fr", "it")


def test_a_sentencepiece_model_is_applied(tmp_path: Path) -> None:
    """The model loads whichever pieces the dictionary has; the others become unknown tokens."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat", "the dog"] * 9), model_writer=model, vocab_size=15,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (tmp_path / "m.model").write_bytes(model.getvalue())
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    options = ("--sentencepiece-model", str(tmp_path / "m.model"))
    assert import_command(file, write_dictionaries(tmp_path), tmp_path / "model", *options) == 0
    translator = load(tmp_path / "model", "cpu")
    program = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    assert translator.words.source.pieces(["the", "cat"]) == program.encode("the cat", out_type=str)
    assert len(translator.translate(["the cat"])) == 1


def test_pieces_below_the_threshold_are_split_further(tmp_path: Path) -> None:
    """subword-nmt apply-bpe --vocabulary does the same; the model never saw such pieces in training."""
    apply_bpe = pytest.importorskip("subword_nmt.apply_bpe", reason="needs the package subword-nmt")
    (tmp_path / "codes").write_text("#version: 0.2\nl o\nlo w</w>\ne r</w>\n", encoding="utf-8")
    (tmp_path / "pieces").write_text("low 9\nlo@@ 3\nw@@ 5\ner 2\n", encoding="utf-8")
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    options = ("--bpe-codes", str(tmp_path / "codes"), "--bpe-vocabulary", str(tmp_path / "pieces"))
    with (tmp_path / "codes").open(encoding="utf-8") as codes, (tmp_path / "pieces").open() as pieces:
        program = apply_bpe.BPE(codes, vocab=apply_bpe.read_vocabulary(pieces, 4))
    for name, extra in (("model", ("--bpe-vocabulary-threshold", "4")), ("all", ())):
        assert import_command(file, write_dictionaries(tmp_path), tmp_path / name, *options, *extra) == 0
    words = ["low", "lower", "lo"]
    found = load(tmp_path / "model", "cpu").words.source.pieces(words)
    assert found == program.process_line(" ".join(words)).split()
    assert found == ["low", "l@@", "o@@", "w@@", "e@@", "r", "l@@", "o"]
    assert load(tmp_path / "all", "cpu").words.source.pieces(["lower"]) == ["lo@@", "w@@", "er"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("low\n", "pieces, line 1: found 'low', wanted a piece, a space and its count"),
        ("low 3\n", "pieces has no piece with a count of 4 or more"),
    ],
)
def test_a_file_without_pieces_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    """Otherwise the imported model would split every word into characters."""
    (tmp_path / "codes").write_text("l o\n", encoding="utf-8")
    (tmp_path / "pieces").write_text(text, encoding="utf-8")
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    vocabulary = ("--bpe-vocabulary", str(tmp_path / "pieces"), "--bpe-vocabulary-threshold", "4")
    assert message in failed(capsys, file, tmp_path, "--bpe-codes", str(tmp_path / "codes"), *vocabulary)
    assert "--bpe-vocabulary without --bpe-codes" in failed(capsys, file, tmp_path, *vocabulary)


def test_an_invalid_segmentation_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the import would write a folder that cannot translate."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    (tmp_path / "wrong").write_text("word\n", encoding="utf-8")
    message = failed(capsys, file, tmp_path, "--bpe-codes", str(tmp_path / "wrong"))
    assert "wanted two symbols separated" in message
    message = failed(capsys, file, tmp_path, "--sentencepiece-model", str(tmp_path / "wrong"))
    assert f"{tmp_path / 'wrong'} is not a SentencePiece model" in message
    (tmp_path / "wrong").write_text("a b\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "subword_nmt.apply_bpe", None)
    message = failed(capsys, file, tmp_path, "--bpe-codes", str(tmp_path / "wrong"))
    assert "pip install 'convs2s[subword-nmt]'" in message
