"""Options of `convs2s import-fairseq`: their effect on words and lengths, and which exclude each other."""

from pathlib import Path

import pytest

from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.package.translator import load
from tests.commands.importing import failed, settings
from tests.golden import import_command, write_checkpoint, write_dictionaries

END, UNKNOWN = 2, 3  # fairseq's ids


def write_words(folder: Path, *words: str) -> tuple[Path, Path]:
    """Write dictionaries whose first source words, fairseq's ids 4 and up, are the given ones."""
    source, target = write_dictionaries(folder)
    rows = source.read_text(encoding="utf-8").split("\n")
    rows[: len(words)] = [f"{word} 9" for word in words]
    source.write_text("\n".join(rows), encoding="utf-8")
    return source, target


def reaching(folder: Path, text: str) -> list[int]:
    """Translate a text; return the source ids that the model looked up, in fairseq's numbering."""
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


def test_hyphens_reach_the_model_as_in_stanfords_text(tmp_path: Path) -> None:
    """Without --at-sign, split hyphens and at signs would be unknown to the released model (T30)."""
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
    """A model trained on lower-cased text has no entries for capitalized words."""
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
    """Otherwise they would be accepted but have no effect."""
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
    """fairseq's default, --max-len-a 0 --max-len-b 200, differs from the limit of its golden outputs."""
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
    """Otherwise the import would write a folder that cannot translate."""
    file = write_checkpoint(tmp_path / "model.pt", "plain")
    assert message in failed(capsys, file, tmp_path, *options)
