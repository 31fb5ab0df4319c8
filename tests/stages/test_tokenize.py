"""Stages truecase and tokenize."""

from pathlib import Path

from convs2s.base.files import Pair, read_folder, write_folder
from convs2s.config.section import NOTHING
from pipelines.stages import tokenize, truecase
from tests.decode.parrot import TOKENIZE

CASED = [("We saw the cat in Paris.", "Am văzut pisica la Paris."), ("The cat!", "Pisica şi ea!")] * 5


def run(folder: Path, pairs: list[Pair], languages: tuple[str, str] = ("en", "de"), **changes: bool) -> Path:
    """Run the stage tokenize; return its output."""
    write_folder(folder / "raw", pairs)
    params = TOKENIZE.model_copy(update=changes)
    tokenize.run(params, languages, folder / "cases", folder / "raw", folder / "out")
    return folder / "out"


def test_each_line_gives_one_line_of_words(tmp_path: Path) -> None:
    """Line i of the output must be line i of the input, or all later stages pair the wrong sentences."""
    pairs = [("It's late.", "Es ist „spät“."), ("", "x\u2028y\x0bz"), ("a\tb\x00c", ""), ("\x85", "🙂")]
    expected = [("It 's late .", 'Es ist " spät " .'), ("", "x y z"), ("a b c", ""), ("", "🙂")]
    assert list(read_folder(run(tmp_path, pairs))) == expected
    assert list(read_folder(run(tmp_path, []))) == []  # validation pairs may come from the training set


def test_words_get_the_case_inside_sentences_of_their_side(tmp_path: Path) -> None:
    """It is counted after tokenization, or "Paris." would be a word. Romanian letters are normalized, too."""
    languages = ("en", "ro")
    changes = {"truecase": True, "normalize_romanian": True}
    write_folder(tmp_path / "train", CASED)
    truecase.run(
        TOKENIZE.model_copy(update=changes), languages, NOTHING, tmp_path / "train", tmp_path / "cases"
    )
    source, target = (
        (tmp_path / "cases" / f"{side}.tsv").read_text(encoding="utf-8") for side in ("source", "target")
    )
    assert source == "cat\t10\nParis\t5\nin\t5\nsaw\t5\nthe\t5\n"
    assert "pisica\t5\n" in target
    out = run(tmp_path, [("The Cat ş.", "Paris ş."), ("PARIS.", "PISICA ţ.")], languages, **changes)
    assert list(read_folder(out)) == [("the cat ş .", "Paris ș ."), ("Paris .", "pisica ț .")]


def test_a_training_that_starts_from_a_model_takes_its_truecasers(tmp_path: Path) -> None:
    """Its words have the case that they had; without truecasing there is nothing to take."""
    write_folder(tmp_path / "train", CASED)
    (tmp_path / "truecaser.tsv").write_text("the\t5\n")
    (tmp_path / "truecaser.target.tsv").write_text("die\t7\n")
    for wanted, expected in ((True, ["the\t5\n", "die\t7\n"]), (False, ["", ""])):
        params = TOKENIZE.model_copy(update={"truecase": wanted})
        truecase.run(params, ("en", "ro"), str(tmp_path), tmp_path / "train", tmp_path / "cases")
        assert [path.read_text() for path in sorted((tmp_path / "cases").iterdir())] == expected
