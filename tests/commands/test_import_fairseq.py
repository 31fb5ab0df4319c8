"""`convs2s import-fairseq` as a user runs it: equal to real fairseq, each option's effect, and errors."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from convs2s.cli import main
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.ids.vocabulary import EOS
from convs2s.model.storage import load_model
from convs2s.package.folder import read_settings
from convs2s.package.translator import load
from tests.golden import golden, import_command, write_checkpoint, write_dictionaries
from tests.golden.judge import SENTENCES, check_hypotheses, check_outputs, sources, wanted_hypotheses

FAIRSEQ = Path(__file__).parents[3] / "shared" / "fairseq"

END, UNKNOWN = 2, 3  # fairseq's ids


@pytest.mark.skipif(not FAIRSEQ.is_dir(), reason="no folder ../shared/fairseq next to the repository")
@pytest.mark.parametrize("file", ["plain.pt", "plain.legacy.pt", "varied.pt", "varied.legacy.pt"])
def test_files_of_fairseq_give_its_outputs(file: str, tmp_path: Path) -> None:
    """These are its logits, attention, losses, and every hypothesis of beams 1 and 5 with its score."""
    name = file.split(".", maxsplit=1)[0]
    dictionaries = FAIRSEQ / "dict.en.txt", FAIRSEQ / "dict.de.txt"
    with np.load(FAIRSEQ / f"{name}.npz") as arrays:
        assert all(np.array_equal(arrays[key], golden(name)[key]) for key in arrays.files)
    assert import_command(FAIRSEQ / file, dictionaries, tmp_path / "model") == 0
    model = load_model(tmp_path / "model")
    check_outputs(model, name)
    for beam in (1, 5):
        check_hypotheses(StepwiseModel(model), name, beam)


def spell(ids: list[int], letter: str) -> str:
    """Return our ids as made-up words: e4 for fairseq's id 4, which is our id 3."""
    return " ".join("<unk>" if id_ == 2 else f"{letter}{id_ + 1}" for id_ in ids if id_ != EOS)


def test_translate_writes_every_hypothesis_and_score_of_fairseq(plain: Path, tmp_path: Path) -> None:
    """From imported model to translated text; the source has unknown words, too."""
    beam = 5
    lines = [spell(source.tolist(), "e") for source in sources("plain")]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--beam-size", str(beam), "--n-best", str(beam), "--device", "cpu"]
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")]
    assert main(["translate", "--model", str(plain), *options, *files]) == 0
    lines = (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [line.split(" ||| ") for line in lines]
    wanted = [
        (str(k), score, spell(tokens, "d"))
        for k in SENTENCES
        for tokens, score in wanted_hypotheses("plain", beam)[k]
    ]
    assert [(row[0], row[1]) for row in rows] == [(number, text) for number, _, text in wanted]
    assert [float(row[2]) for row in rows] == pytest.approx([score for _, score, _ in wanted], abs=1e-4)


def test_the_folder_records_what_was_imported(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """fairseq's behavior is recorded in model.json and translate.json, and listed in the model card."""
    model = json.loads((plain / "model.json").read_text(encoding="utf-8"))
    assert model["architecture"]["encoder_grad_scale"] == "fairseq"
    assert (model["source_size"], model["target_size"]) == (352, 376)
    translate = json.loads((plain / "translate.json").read_text(encoding="utf-8"))
    assert translate["replace"] is False
    assert (translate["translate"]["min_length"], translate["translate"]["legacy_eos"]) == (1, False)
    card = (plain / "README.md").read_text(encoding="utf-8")
    assert "| vocabulary | word; 352 source and 376 target entries |" in card
    assert "| search | beam_size: 5, alpha: 1.0, min_length: 1, max_length_ratio: 1.2, max_length_e" in card
    again = write_checkpoint(plain.parent / "again.pt", "plain"), write_dictionaries(plain.parent)
    assert import_command(*again, plain.parent / "again", "--lowercase") == 0
    assert capsys.readouterr().out == (
        f"{plain.parent / 'again'}: 3 + 2 blocks, 65,668 parameters, 352 source and 376 target entries, "
        "weight norm per channel; text is segmented by: word\n"
    )
    assert import_command(*again, plain.parent / "again") == 2  # it could be any folder
    assert "again already exists; expected a new folder" in capsys.readouterr().err
    assert look_up(plain.parent / "again", "E4 E5") == [4, 5, END]


def write_words(folder: Path, *words: str) -> tuple[Path, Path]:
    """Write dictionaries whose first source words, fairseq's ids 4 and up, are the given ones."""
    source, target = write_dictionaries(folder)
    rows = source.read_text(encoding="utf-8").split("\n")
    rows[: len(words)] = [f"{word} 9" for word in words]
    source.write_text("\n".join(rows), encoding="utf-8")
    return source, target


def look_up(folder: Path, text: str) -> list[int]:
    """Return the source ids of a text, in fairseq's numbering."""
    translator = load(folder, "cpu")
    return [id_ + 1 for id_ in translator.words.source.encode(translator.source.tokenize(text))]


def test_hyphens_reach_the_model_as_in_stanfords_text(tmp_path: Path) -> None:
    """Without --at-sign, split hyphens and at signs would be unknown to the released model (T30)."""
    dictionaries = write_words(tmp_path, "a", "well", "##AT##-##AT##", "known", "##AT##", "&amp;", "@-@")
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    moses = ("--tokenizer", "moses", "--aggressive-hyphens")
    assert import_command(file, dictionaries, tmp_path / "new", *moses, "--at-sign", "##AT##") == 0
    assert import_command(file, dictionaries, tmp_path / "old", *moses) == 0
    text = "a well-known @ & Well"
    assert look_up(tmp_path / "new", text) == [4, 5, 6, 7, 8, 9, UNKNOWN, END]
    assert look_up(tmp_path / "old", text) == [4, 5, 10, 7, UNKNOWN, 9, UNKNOWN, END]
    assert load(tmp_path / "new", "cpu").target.detokenize(["a", "##AT##-##AT##", "b"]) == "a-b"
    card = (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
    words = "tokenizer: moses, corpus: raw, aggressive_hyphens: True, escape: True, at_sign: ##AT##"
    assert f"| words | {words} |" in card


def test_the_length_limit_is_recorded_and_kept(plain: Path, tmp_path: Path) -> None:
    """fairseq's default, --max-len-a 0 --max-len-b 200, differs from the limit of its golden outputs."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    options = ("--max-length-ratio", "0.5", "--max-length-extra", "2.25", "--max-length-of", "batch")
    assert import_command(file, write_dictionaries(tmp_path), tmp_path / "model", *options) == 0
    text = "e5 e9 e7 e12"
    for folder, longest in ((plain, 15), (tmp_path / "model", 4)):
        [[found]] = load(folder, "cpu", min_length=longest).translate_n_best([text])
        assert len(found.tokens) == longest + 1


def test_bpe_codes_are_applied_and_undone(tmp_path: Path) -> None:
    """Text goes in and comes out in words; pieces below the threshold, which training lacked, are split."""
    pytest.importorskip("subword_nmt", reason="needs the package subword-nmt")
    source, target = write_words(tmp_path, "lo@@", "w")
    text = target.read_text(encoding="utf-8")
    target.write_text("".join(line.replace(" ", "@@ ", 1) + "\n" for line in text.split("\n") if line))
    (tmp_path / "codes").write_text("#version: 0.2\nl o\nlo w</w>\ne r</w>\n", encoding="utf-8")
    (tmp_path / "pieces").write_text("low 9\nlo@@ 3\nw@@ 5\ner 2\n", encoding="utf-8")
    file = write_checkpoint(tmp_path / "model.pt", "plain", source_lang="fr", target_lang="it")
    options = ("--bpe-codes", str(tmp_path / "codes"), "--tokenizer", "moses", "--aggressive-hyphens")
    threshold = ("--bpe-vocabulary", str(tmp_path / "pieces"), "--bpe-vocabulary-threshold", "4")
    for name, extra in (("all", ()), ("model", threshold)):
        assert import_command(file, (source, target), tmp_path / name, *options, *extra) == 0
    [[best]] = load(tmp_path / "all", "cpu").translate_n_best(["low low-low"])
    assert [token for token in best.tokens if token.endswith("@@")]
    assert "@@" not in best.text.replace("@-@", "")
    assert read_settings(tmp_path / "all").languages == ("fr", "it")
    for name, pieces in (("all", "low lo@@ w@@ er l@@ o"), ("model", "low l@@ o@@ w@@ e@@ r l@@ o")):
        found = load(tmp_path / name, "cpu").words.source.pieces(["low", "lower", "lo"])
        assert found == pieces.split()  # as subword-nmt itself splits them


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


def test_a_tokenizer_needs_the_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They come from an option, the checkpoint or the dictionary's file name, in this order."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    source, target = write_dictionaries(tmp_path)
    files, moses = (source.rename(tmp_path / "nameless.txt"), target), ("--tokenizer", "moses")
    assert import_command(file, files, tmp_path / "out", *moses) == 2
    message = "does not name its source language, which the tokenizer needs. Give --source-language"
    assert message in capsys.readouterr().err
    assert import_command(file, files, tmp_path / "out", *moses, "--source-language", "fr") == 0
    assert import_command(file, files, tmp_path / "split") == 0
    languages = [read_settings(tmp_path / name).languages[0] for name in ("out", "split")]
    assert languages == ["fr", "und"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--no-escape", "would do nothing without --tokenizer moses"),
        ("--tokenizer moses --at-sign ##AT## --lowercase", "expected at_sign @ with lowercase, found"),
        ("--max-length-extra 0", "max_length_extra: "),
        ("--bpe-vocabulary word", "--bpe-vocabulary without --bpe-codes would do nothing"),
        ("--bpe-codes codes --bpe-vocabulary word", "word, line 1: "),
        ("--bpe-codes codes --bpe-vocabulary rare --bpe-vocabulary-threshold 4", "a count of 4 or more"),
        ("--bpe-codes word", "word, line 1: "),
        ("--sentencepiece-model word", "word is not a SentencePiece model"),
    ],
)
def test_an_import_that_could_not_translate_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: str,
    message: str,
) -> None:
    """An option without effect, or a file of another kind, is one line on standard error; nothing is left."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("codes", "l o\n"), ("word", "word\n"), ("rare", "low 3\n")):
        Path(name).write_text(text, encoding="utf-8")
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    before = {path.name for path in tmp_path.iterdir()} | {"dict.en.txt", "dict.de.txt"}
    assert import_command(file, write_dictionaries(tmp_path), tmp_path / "out", *options.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("convs2s: error: ")
    assert message in error
    assert {path.name for path in tmp_path.iterdir()} == before
