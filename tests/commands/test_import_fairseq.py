"""`convs2s import-fairseq`, as a user runs it: compared with real fairseq on the same files."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.cli import main
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.model.loading import load_model
from convs2s.package.translator import load
from convs2s.text.vocabulary.vocabulary import EOS
from tests.golden import (
    NAMES,
    golden,
    import_command,
    tensors,
    write_checkpoint,
    write_dictionaries,
)
from tests.golden.judge import SENTENCES, check_hypotheses, check_outputs, sources, wanted_hypotheses
from tests.package.small_package import without_digests

FAIRSEQ = Path(__file__).parents[3] / "shared" / "fairseq"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Import the plain golden model; return the model folder."""
    folder = tmp_path_factory.mktemp("plain")
    file = write_checkpoint(folder / "model.pt", "plain")
    assert import_command(file, write_dictionaries(folder), folder / "model") == 0
    return folder / "model"


def shared_files(name: str) -> tuple[Path, tuple[Path, Path]]:
    """Return a checkpoint that fairseq itself saved, and its dictionaries."""
    if not FAIRSEQ.is_dir():
        pytest.skip("no folder ../shared/fairseq with files of fairseq next to the repository")
    return FAIRSEQ / name, (FAIRSEQ / "dict.en.txt", FAIRSEQ / "dict.de.txt")


@pytest.mark.parametrize("file", ["plain.pt", "plain.legacy.pt", "varied.pt", "varied.legacy.pt"])
def test_files_of_fairseq_give_its_outputs(file: str, tmp_path: Path) -> None:
    """Logits, attention, losses, and every hypothesis of beams 1 and 5 with its score."""
    name = file.split(".", maxsplit=1)[0]
    checkpoint, dictionaries = shared_files(file)
    with np.load(FAIRSEQ / f"{name}.npz") as arrays:
        assert all(np.array_equal(arrays[key], golden(name)[key]) for key in arrays.files)
    assert import_command(checkpoint, dictionaries, tmp_path / "model") == 0
    model = load_model(tmp_path / "model")
    check_outputs(model, name)
    for beam in (1, 5):
        check_hypotheses(model, name, beam)


@pytest.mark.parametrize("config", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_model(name: str, zipped: bool, config: bool, tmp_path: Path) -> None:
    """Arguments as a namespace or in a config; PyTorch's container of today or that of 2017."""
    file = write_checkpoint(tmp_path / "model.pt", name, config=config, zipped=zipped)
    assert import_command(file, write_dictionaries(tmp_path), tmp_path / "model") == 0
    check_outputs(load_model(tmp_path / "model"), name)


def spelled(ids: list[int], letter: str) -> str:
    """Return our ids as made-up words: e4 for fairseq's id 4, which is our id 3."""
    return " ".join("<unk>" if id_ == 2 else f"{letter}{id_ + 1}" for id_ in ids if id_ != EOS)


@pytest.mark.parametrize("beam", [1, 5])
def test_translate_writes_every_hypothesis_and_score_of_fairseq(
    plain: Path, beam: int, tmp_path: Path
) -> None:
    """End to end: text, import, translate, text; unknown words in the source included."""
    lines = [spelled(source.tolist(), "e") for source in sources("plain")]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--beam-size", str(beam), "--n-best", str(beam), "--scores", "--device", "cpu"]
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")]
    assert main(["translate", "--model", str(plain), *options, *files]) == 0
    rows = [line.split("\t") for line in (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")[:-1]]
    wanted = [
        (str(k + 1), score, spelled(tokens, "d"))
        for k in SENTENCES
        for tokens, score in wanted_hypotheses("plain", beam)[k]
    ]
    assert [(row[0], row[2]) for row in rows] == [(number, text) for number, _, text in wanted]
    assert [float(row[1]) for row in rows] == pytest.approx([score for _, score, _ in wanted], abs=1e-4)


def test_files_of_fairseq_translate_as_fairseq_does(tmp_path: Path) -> None:
    """With the real dictionaries: words not in them are unknown, pieces stay as written."""
    checkpoint, dictionaries = shared_files("varied.legacy.pt")
    assert import_command(checkpoint, dictionaries, tmp_path / "model") == 0
    translator = load(tmp_path / "model", "cpu", n_best=5)
    source, target = translator.words.source, translator.words.target
    texts = [" ".join(map(source.vocabulary.entry, ids.tolist()[:-1])) for ids in sources("varied")]
    found = translator.translate_n_best(texts)
    for translations, wanted in zip(found, wanted_hypotheses("varied", 5), strict=True):
        assert [t.text for t in translations] == [
            " ".join(map(target.vocabulary.entry, tokens[:-1])) for tokens, _ in wanted
        ]
        assert [t.score for t in translations] == pytest.approx([score for _, score in wanted], abs=1e-5)
    assert settings(tmp_path / "model")["source_language"] == "en"  # from the name dict.en.txt


def settings(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")))


def test_a_folder_from_before_vocabulary_selection_translates_as_before(plain: Path, tmp_path: Path) -> None:
    """Its settings lack the key; the whole vocabulary is searched."""
    old = without_digests(shutil.copytree(plain, tmp_path / "old"))
    content = json.loads((old / "translate.json").read_text(encoding="utf-8"))
    assert content["translate"].pop("selection", "none") is None
    (old / "translate.json").write_text(json.dumps(content), encoding="utf-8")
    texts = ["e5 e9 e7", "e12"]
    assert load(old, "cpu").translate(texts) == load(plain, "cpu").translate(texts)
    assert not (plain / "candidates.npz").exists()


def test_the_folder_says_what_was_imported(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """fairseq's behavior is recorded: in model.json, in translate.json, and in words in the card."""
    model = json.loads((plain / "model.json").read_text(encoding="utf-8"))
    assert model["architecture"]["encoder_grad_scale"] == "fairseq"
    assert model["architecture"]["extra_scaling"] is True
    assert (model["source_size"], model["target_size"]) == (352, 376)
    translate = json.loads((plain / "translate.json").read_text(encoding="utf-8"))
    assert translate["replace"] is False
    assert (translate["translate"]["min_length"], translate["translate"]["legacy_eos"]) == (1, False)
    card = (plain / "README.md").read_text(encoding="utf-8")
    for trap in ("T4", "T6", "T7", "T17", "T18", "T20", "T21"):
        assert f"({trap})" in card
    assert card.startswith("---\nlanguage:\n- ") and "license_name: unknown\n" in card
    assert "| words | whitespace-separated |" in card
    assert "| vocabulary | word; 352 source and 376 target entries |" in card
    file = write_checkpoint(plain.parent / "again.pt", "plain")
    assert import_command(file, write_dictionaries(plain.parent), plain.parent / "again") == 0
    assert capsys.readouterr().out == (
        f"{plain.parent / 'again'}: 3 + 2 blocks, 65,668 parameters, 352 source and 376 target entries, "
        "weight norm per channel; text is segmented by: word\n"
    )


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


def write_words(folder: Path, *words: str) -> tuple[Path, Path]:
    """Write dictionaries; these are the first words of the source, fairseq's ids 4 and on."""
    source, target = write_dictionaries(folder)
    rows = source.read_text(encoding="utf-8").split("\n")
    rows[: len(words)] = [f"{word} 9" for word in words]
    source.write_text("\n".join(rows), encoding="utf-8")
    return source, target


def reaching(folder: Path, text: str) -> list[int]:
    """Translate a text; return the source ids that the model looked up, as fairseq numbers them."""
    translator = load(folder, "cpu")
    seen: list[list[int]] = []
    model = translator.words.model
    assert isinstance(model, StepwiseModel)
    hook = model.seq2seq.source_embedding.words.register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0][0].tolist())
    )
    translator.translate([text])
    hook.remove()
    assert all(ids == seen[0] for ids in seen)
    return [id_ + 1 for id_ in seen[0]]


END, UNKNOWN = 2, 3  # of fairseq


def test_hyphens_reach_the_model_as_in_stanfords_text(tmp_path: Path) -> None:
    """Without the option each split hyphen and at sign would be unknown to the released model (T30)."""
    dictionaries = write_words(tmp_path, "a", "well", "##AT##-##AT##", "known", "##AT##", "&amp;", "@-@")
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    moses = ("--tokenizer", "moses", "--aggressive-hyphens")
    assert import_command(file, dictionaries, tmp_path / "new", *moses, "--at-sign", "##AT##") == 0
    assert import_command(file, dictionaries, tmp_path / "old", *moses) == 0
    text = "a well-known @ & Well"
    assert reaching(tmp_path / "new", text) == [4, 5, 6, 7, 8, 9, UNKNOWN, END]
    assert reaching(tmp_path / "old", text) == [4, 5, 10, 7, UNKNOWN, 9, UNKNOWN, END]
    assert load(tmp_path / "new", "cpu").target.detokenize(["a", "##AT##-##AT##", "b"]) == "a-b"
    tokenize = settings(tmp_path / "new")["tokenize"]
    assert isinstance(tokenize, dict)
    assert (tokenize["at_sign"], tokenize["lowercase"]) == ("##AT##", False)
    card = (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
    assert "| words | Moses, aggressive hyphens, escape, `##AT##` for @ (T30) |" in card


@pytest.mark.parametrize("tokenizer", ["moses", "none"])
def test_lower_case_reaches_the_model(tmp_path: Path, tokenizer: str) -> None:
    """A model of lower-cased text knows no other words."""
    dictionaries = write_words(tmp_path, "the", "cat")
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    options = ("--tokenizer", tokenizer)
    assert import_command(file, dictionaries, tmp_path / "new", *options, "--lowercase") == 0
    assert import_command(file, dictionaries, tmp_path / "old", *options) == 0
    assert reaching(tmp_path / "new", "The CAT") == [4, 5, END]
    assert reaching(tmp_path / "old", "The cat") == [UNKNOWN, 5, END]
    card = (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
    wanted = {"moses": "Moses, escape, lowercase", "none": "whitespace-separated, lowercase"}
    assert f"| words | {wanted[tokenizer]} |" in card


@pytest.mark.parametrize(
    ("options", "idle"),
    [
        (["--at-sign", "##AT##", "--aggressive-hyphens"], "--aggressive-hyphens, --at-sign ##AT##"),
        (["--no-escape"], "--no-escape"),
        (["--remove-nonprinting"], "--remove-nonprinting"),
        (["--normalize-punctuation"], "--normalize-punctuation"),
    ],
)
def test_options_of_moses_need_moses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], idle: str
) -> None:
    """Otherwise they would be accepted and do nothing."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    message = failed(capsys, file, tmp_path, *options)
    assert message.startswith(f"convs2s: error: {idle} without --tokenizer moses would do nothing")
    assert "add --tokenizer moses for raw text" in message


def test_lower_case_and_at_signs_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """##AT## would become ##at##, which is never turned back into an at sign."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    options = ("--tokenizer", "moses", "--at-sign", "##AT##", "--lowercase")
    message = failed(capsys, file, tmp_path, *options)
    assert "--lowercase and --at-sign ##AT## are both given; wanted at most one of them" in message


def test_the_length_limit_is_recorded_and_kept(plain: Path, tmp_path: Path) -> None:
    """fairseq's default, --max-len-a 0 --max-len-b 200, is not that of its golden outputs."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    options = ("--max-length-ratio", "0.5", "--max-length-extra", "2.25", "--max-length-of", "batch")
    assert import_command(file, write_dictionaries(tmp_path), tmp_path / "model", *options) == 0
    text = "e5 e9 e7 e12"
    for folder, longest in ((plain, 15), (tmp_path / "model", 4)):
        [[found]] = load(folder, "cpu", min_length=longest).translate_n_best([text])
        assert len(found.tokens) == longest + 1
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    limit = "0.5 S + 2.25 tokens for S source tokens, not counting EOS, of the longest sentence in the batch"
    assert f"| longest translation | {limit} |" in card
    assert "| longest translation | 1.2 S + 11.2 tokens" in (plain / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-length-extra", "0"), "max_length_extra: found 0.0, wanted greater than or equal to 1"),
        (("--max-length-ratio", "-1"), "max_length_ratio: found -1.0, wanted greater than or equal to 0"),
    ],
)
def test_an_impossible_limit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, str], message: str
) -> None:
    """Before a folder is written that could not translate."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    assert message in failed(capsys, file, tmp_path, *options)


def test_a_sentencepiece_model_is_applied(tmp_path: Path) -> None:
    """Which pieces the dictionary has does not matter for loading; unknown ones are unknown."""
    import io  # noqa: PLC0415

    import sentencepiece  # noqa: PLC0415

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
    """As by subword-nmt apply-bpe --vocabulary; the model never saw such a piece in training."""
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
    """Before a folder is written that would split every word into characters."""
    (tmp_path / "codes").write_text("l o\n", encoding="utf-8")
    (tmp_path / "pieces").write_text(text, encoding="utf-8")
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    vocabulary = ("--bpe-vocabulary", str(tmp_path / "pieces"), "--bpe-vocabulary-threshold", "4")
    assert message in failed(capsys, file, tmp_path, "--bpe-codes", str(tmp_path / "codes"), *vocabulary)
    assert "--bpe-vocabulary without --bpe-codes" in failed(capsys, file, tmp_path, *vocabulary)


def failed(capsys: pytest.CaptureFixture[str], file: Path, folder: Path, *options: str) -> str:
    """Check that the import fails and leaves nothing behind; return the message."""
    assert import_command(file, write_dictionaries(folder), folder / "out", *options) == 2
    assert not (folder / "out").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return capsys.readouterr().err


def test_a_misfit_is_reported_in_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error on its line, then each difference on its own."""
    weights = tensors("plain")
    del weights["encoder.fc2.bias"]
    file = write_checkpoint(tmp_path / "model.pt", "plain", decoder_out_embed_dim=21, tensors=weights)
    first, *rows = failed(capsys, file, tmp_path).split("\n")
    assert first.startswith("convs2s: error: ")
    assert "in 5 tensor(s), listed below" in first
    assert rows == [
        "  decoder.fc2.bias: found (20,), wanted (21,)",
        "  decoder.fc2.weight_g: found (20, 1), wanted (21, 1)",
        "  decoder.fc2.weight_v: found (20, 32), wanted (21, 32)",
        "  decoder.fc3.weight_v: found (376, 20), wanted (376, 21)",
        "  encoder.fc2.bias: found nothing, wanted (24,)",
        "",
    ]


def test_an_unknown_class_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On one line, like every error."""
    file = write_checkpoint(tmp_path / "model.pt", "plain", seed=pytest.Item)
    error = failed(capsys, file, tmp_path)
    assert "holds an object of the class _pytest.nodes.Item, which is refused" in error
    assert error.count("\n") == 1


def test_a_folder_that_exists_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It could be anything, such as the home directory."""
    (tmp_path / "out").mkdir()
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    assert import_command(file, write_dictionaries(tmp_path), tmp_path / "out") == 2
    assert f"{tmp_path / 'out'} exists already; wanted a new folder" in capsys.readouterr().err


def test_a_tokenizer_needs_the_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named by an option, the checkpoint or the dictionary's file, in this order."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    source, target = write_dictionaries(tmp_path)
    nameless = source.rename(tmp_path / "source.txt")
    assert import_command(file, (nameless, target), tmp_path / "out", "--tokenizer", "moses") == 2
    assert "does not name its source language, which the tokenizer needs. Give --source-language" in (
        capsys.readouterr().err
    )
    options = ("--tokenizer", "moses", "--source-language", "fr")
    assert import_command(file, (nameless, target), tmp_path / "out", *options) == 0
    assert settings(tmp_path / "out")["source_language"] == "fr"
    assert import_command(file, (nameless, target), tmp_path / "split") == 0
    assert settings(tmp_path / "split")["source_language"] == "und"


def test_an_invalid_segmentation_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a folder is written that could not translate."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    (tmp_path / "wrong").write_text("word\n", encoding="utf-8")
    message = failed(capsys, file, tmp_path, "--bpe-codes", str(tmp_path / "wrong"))
    assert "wanted two symbols separated" in message
    message = failed(capsys, file, tmp_path, "--sentencepiece-model", str(tmp_path / "wrong"))
    assert f"{tmp_path / 'wrong'} is no sentencepiece model" in message
    (tmp_path / "wrong").write_text("a b\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "subword_nmt.apply_bpe", None)
    message = failed(capsys, file, tmp_path, "--bpe-codes", str(tmp_path / "wrong"))
    assert "pip install 'convs2s[subword-nmt]'" in message


def test_the_weights_are_those_of_the_file(plain: Path) -> None:
    """A spot check by name: the map before the softmax layer is fairseq's fc2, row by row."""
    g, v = tensors("plain")["decoder.fc2.weight_g"], tensors("plain")["decoder.fc2.weight_v"]
    weight = load_model(plain).decoder.output_map.weight
    torch.testing.assert_close(weight, g * v / v.norm(dim=1, keepdim=True))
