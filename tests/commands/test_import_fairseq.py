"""`convs2s import-fairseq` as a user runs it: equal to real fairseq, each option's effect, and errors."""

import io
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from convs2s.ids.vocabulary import EOS
from convs2s.model.storage import load_model
from convs2s.package.folder import read_settings
from convs2s.package.translator import load
from convs2s.search.stepwise_model import StepwiseModel
from tests.golden import golden, import_command, write_checkpoint, write_dictionaries
from tests.golden.judge import check_hypotheses, check_outputs, sources, wanted_hypotheses

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


def test_text_is_translated_as_by_fairseq(plain: Path) -> None:
    """Every hypothesis and score is fairseq's, with the folder's own search and unknown words."""
    lines = [spell(source.tolist(), "e") for source in sources("plain")]
    ranked = load(plain, "cpu", n_best=5).translate_n_best(lines)
    for translations, wanted in zip(ranked, wanted_hypotheses("plain", 5), strict=True):
        assert [translation.text for translation in translations] == [spell(ids, "d") for ids, _ in wanted]
        scores = [translation.score for translation in translations]
        assert scores == pytest.approx([score for _, score in wanted], abs=1e-4)


def import_plain(folder: Path, *options: str, words: tuple[str, ...] = ()) -> Path:
    """Import the plain model; its first source words, fairseq's ids 4 and up, are the given ones."""
    dictionaries = write_dictionaries(folder)
    rows = dictionaries[0].read_text().splitlines()
    rows[: len(words)] = [f"{word} 9" for word in words]
    dictionaries[0].write_text("\n".join(rows) + "\n")
    file = write_checkpoint(folder / "x.pt", "plain")
    assert import_command(file, dictionaries, folder / "x", *options) == 0
    return folder / "x"


def look_up(folder: Path, text: str) -> list[int]:
    """Return the source ids of a text, in fairseq's numbering."""
    translator = load(folder, "cpu")
    return [id_ + 1 for id_ in translator.words.source.encode(translator.source.tokenize(text))]


def test_what_was_imported_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary is from the model card."""
    model = import_plain(tmp_path, "--lowercase")
    assert capsys.readouterr().out == (
        f"{model}: 3 encoder, 2 decoder; they see 7 and 5 tokens; parameters: 65,668, with weight "
        "normalization folded in; vocabulary: word; 352 source and 376 target entries\n"
    )
    assert "| vocabulary | word; 352 source and 376 target entries |" in (model / "README.md").read_text()
    assert read_settings(model).translate.min_length == 1
    assert look_up(model, "E4 E5") == [4, 5, END]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), [4, 5, 10, 7, UNKNOWN, 9, UNKNOWN, END]),
        (("--at-sign", "##AT##"), [4, 5, 6, 7, 8, 9, UNKNOWN, END]),
    ],
)
def test_hyphens_reach_the_model_as_in_stanfords_text(
    tmp_path: Path, options: tuple[str, ...], ids: list[int]
) -> None:
    """Without --at-sign, split hyphens and at signs would be unknown to the released model (T30)."""
    words = ("a", "well", "##AT##-##AT##", "known", "##AT##", "&amp;", "@-@")
    model = import_plain(tmp_path, "--tokenizer", "moses", "--aggressive-hyphens", *options, words=words)
    assert look_up(model, "a well-known @ & Well") == ids
    assert load(model, "cpu").target.detokenize(["a", words[6 if options == () else 2], "b"]) == "a-b"


def test_the_length_limit_is_recorded_and_kept(plain: Path, tmp_path: Path) -> None:
    """fairseq's default, --max-len-a 0 --max-len-b 200, differs from the limit of its golden outputs."""
    options = ("--max-length-ratio", "0.5", "--max-length-extra", "2.25", "--max-length-of", "batch")
    for folder, longest in ((plain, 16), (import_plain(tmp_path, *options), 4)):
        [[best]] = load(folder, "cpu", min_length=longest).translate_n_best(["e5 e9 e7 e12"])
        assert len(best.tokens) == longest + 1


@pytest.mark.parametrize("threshold", [1, 4])
def test_bpe_codes_are_applied_and_undone(tmp_path: Path, threshold: int) -> None:
    """Text goes in and comes out in words; pieces below the threshold, which training lacked, are split."""
    pytest.importorskip("subword_nmt", reason="needs the package subword-nmt")
    (tmp_path / "codes").write_text("#version: 0.2\nl o\nlo w</w>\ne r</w>\n")
    (tmp_path / "pieces").write_text("low 9\nlo@@ 3\nw@@ 5\ner 2\nl@@ 1\no 1\n")
    options = (
        "--bpe-codes", str(tmp_path / "codes"), "--bpe-vocabulary", str(tmp_path / "pieces"),
        "--bpe-vocabulary-threshold", str(threshold),
    )  # fmt: skip
    entries = ("low", "lo@@", "w@@", "er", "l@@", "o@@", "e@@", "r", "o")
    codec = load(import_plain(tmp_path, *options, words=entries), "cpu").words.source
    pieces = {1: "low lo@@ w@@ er l@@ o", 4: "low l@@ o@@ w@@ e@@ r l@@ o"}[threshold]
    assert codec.pieces(["low", "lower", "lo"]) == pieces.split()  # as subword-nmt itself splits them
    assert codec.decode(codec.encode(["low", "lower", "lo"])) == ["low", "lower", "lo"]


def test_a_sentencepiece_model_is_applied(tmp_path: Path) -> None:
    """The model loads whichever pieces the dictionary has; the others become unknown tokens."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat", "the dog"] * 9), model_writer=model, vocab_size=15,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (tmp_path / "m.model").write_bytes(model.getvalue())
    translator = load(import_plain(tmp_path, "--sentencepiece-model", str(tmp_path / "m.model")), "cpu")
    program = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    assert translator.words.source.pieces(["the", "cat"]) == program.encode("the cat", out_type=str)
    assert len(translator.translate(["the cat"])) == 1


def test_languages_come_from_an_option_the_checkpoint_or_a_file_name(tmp_path: Path) -> None:
    """The user's option comes first, then what the checkpoint says, then a guess from `dict.LANGUAGE.txt`."""
    file = write_checkpoint(tmp_path / "model.pt", "plain", source_lang="fr", target_lang=None)
    dictionaries = write_dictionaries(tmp_path)
    for name, options in (("1", ()), ("2", ("--source-language", "ro"))):
        assert import_command(file, dictionaries, tmp_path / name, *options) == 0
    assert [read_settings(tmp_path / name).languages for name in "12"] == [("fr", "de"), ("ro", "de")]


FILES = {
    "text": "l o\n", "word": "word\n", "newer": "#version: 0.3\nl o\n", "twice": "l 9\nl 9\n",
    "minus": "l -9\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "x.pt does not name its source language. Give --source-language"),
        ("--source-language en --no-escape", "would do nothing without --tokenizer moses"),
        (
            "--source-language en --bpe-codes text --bpe-vocabulary word",
            "word, line 1: expected a piece that is on no line before",
        ),
        ("--source-language en --bpe-codes text --bpe-vocabulary twice", "twice, line 2: expected a piece"),
        ("--source-language en --bpe-codes text --bpe-vocabulary minus", "minus, line 1: expected a piece"),
        ("--source-language en --bpe-codes word", "word: Error: invalid line 1"),
        (
            "--source-language en --bpe-codes newer",
            "newer: its version is 0.3. Expected codes as subword-nmt",
        ),
        (
            "--source-language e\x1b",
            "expected a source language of at most 50 ASCII characters without spaces",
        ),
        ("--source-language en --sentencepiece-model word", "word is not a SentencePiece model"),
        ("--out .", ". already exists; expected a new folder"),
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
    source, target = write_dictionaries(Path())
    for name, text in FILES.items():
        Path(name).write_text(text)
    file = write_checkpoint(Path("x.pt"), "plain")
    before = {*Path().iterdir(), Path("nameless")} - {source}
    assert import_command(file, (source.rename("nameless"), target), Path("out"), *options.split()) == 2
    assert message in capsys.readouterr().err
    assert {*Path().iterdir()} == before
