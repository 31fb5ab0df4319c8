"""`convs2s import-fairseq` as a user runs it, compared with real fairseq on the same files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.cli import main
from convs2s.model.loading import load_model
from convs2s.package.translator import load
from convs2s.text.vocabulary.vocabulary import EOS
from tests.commands.importing import failed, settings
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


def shared_files(name: str) -> tuple[Path, tuple[Path, Path]]:
    """Return a checkpoint that fairseq itself saved, and its dictionaries."""
    if not FAIRSEQ.is_dir():
        pytest.skip("no folder ../shared/fairseq with files of fairseq next to the repository")
    return FAIRSEQ / name, (FAIRSEQ / "dict.en.txt", FAIRSEQ / "dict.de.txt")


@pytest.mark.parametrize("file", ["plain.pt", "plain.legacy.pt", "varied.pt", "varied.legacy.pt"])
def test_files_of_fairseq_give_its_outputs(file: str, tmp_path: Path) -> None:
    """These are its logits, attention, losses, and every hypothesis of beams 1 and 5 with its score."""
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
    """Arguments come as a namespace or in a config, in PyTorch's current container or that of 2017."""
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
    """From imported model to translated text; the source has unknown words, too."""
    lines = [spelled(source.tolist(), "e") for source in sources("plain")]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--beam-size", str(beam), "--n-best", str(beam), "--device", "cpu"]
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")]
    assert main(["translate", "--model", str(plain), *options, *files]) == 0
    lines = (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [line.split(" ||| ") for line in lines]
    wanted = [
        (str(k), score, spelled(tokens, "d"))
        for k in SENTENCES
        for tokens, score in wanted_hypotheses("plain", beam)[k]
    ]
    assert [(row[0], row[1]) for row in rows] == [(number, text) for number, _, text in wanted]
    assert [float(row[2]) for row in rows] == pytest.approx([score for _, score, _ in wanted], abs=1e-4)


def test_files_of_fairseq_translate_as_fairseq_does(tmp_path: Path) -> None:
    """With the real dictionaries, words not in them are unknown and pieces stay as written."""
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


def test_a_folder_from_before_vocabulary_selection_translates_as_before(plain: Path, tmp_path: Path) -> None:
    """Its settings lack the key, so the whole vocabulary is searched."""
    old = without_digests(shutil.copytree(plain, tmp_path / "old"))
    content = json.loads((old / "translate.json").read_text(encoding="utf-8"))
    assert content["translate"].pop("selection", "none") is None
    (old / "translate.json").write_text(json.dumps(content), encoding="utf-8")
    texts = ["e5 e9 e7", "e12"]
    assert load(old, "cpu").translate(texts) == load(plain, "cpu").translate(texts)
    assert not (plain / "candidates.npz").exists()


def test_the_folder_records_what_was_imported(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """fairseq's behavior is recorded in model.json and translate.json, and described in the model card."""
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


def test_a_misfit_is_reported_in_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error is on the first line, then each difference on its own line."""
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
    """A pickle can run any code, so unknown classes are refused; the error is one line."""
    file = write_checkpoint(tmp_path / "model.pt", "plain", seed=pytest.Item)
    error = failed(capsys, file, tmp_path)
    assert "contains an object of the class _pytest.nodes.Item, which is refused" in error
    assert error.count("\n") == 1


def test_a_folder_that_exists_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It could be any folder, such as the home directory."""
    (tmp_path / "out").mkdir()
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    assert import_command(file, write_dictionaries(tmp_path), tmp_path / "out") == 2
    assert f"{tmp_path / 'out'} already exists; wanted a new folder" in capsys.readouterr().err


def test_a_tokenizer_needs_the_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They come from an option, the checkpoint or the dictionary's file name, in this order."""
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


def test_the_weights_are_those_of_the_file(plain: Path) -> None:
    """A spot check: the layer before the softmax layer is fairseq's fc2, row by row."""
    g, v = tensors("plain")["decoder.fc2.weight_g"], tensors("plain")["decoder.fc2.weight_v"]
    weight = load_model(plain).decoder.output_map.weight
    torch.testing.assert_close(weight, g * v / v.norm(dim=1, keepdim=True))
