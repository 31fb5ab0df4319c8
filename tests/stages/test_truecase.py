"""Stage truecase, and its effect on later stages."""

from pathlib import Path

from convs2s.text.corpus.files import read_folder, write_folder
from pipelines.stages import tokenize, truecase
from tests.decode.parrot import TOKENIZE

LANGUAGES = ("en", "ro")
PAIRS = [("We saw the cat in Paris.", "Am văzut pisica la Paris."), ("The cat!", "Pisica şi ea!")] * 5
TRUECASED = TOKENIZE.model_copy(update={"truecase": True})


def test_the_case_inside_sentences_is_counted_after_tokenization(tmp_path: Path) -> None:
    """This holds for each side; without tokenization, "Paris." would be a different word."""
    write_folder(tmp_path / "raw", PAIRS)
    truecase.run(TRUECASED, LANGUAGES, tmp_path / "raw", tmp_path / "cases")
    source = (tmp_path / "cases/source.tsv").read_text(encoding="utf-8")
    assert source == "cat\t10\nParis\t5\nin\t5\nsaw\t5\nthe\t5\n"
    assert "pisica\t5\n" in (tmp_path / "cases/target.tsv").read_text(encoding="utf-8")


def test_tokenizing_gives_words_that_case(tmp_path: Path) -> None:
    """It also normalizes Romanian letters, only on that side."""
    params = TRUECASED.model_copy(update={"normalize_romanian": True})
    write_folder(tmp_path / "raw", PAIRS)
    truecase.run(params, LANGUAGES, tmp_path / "raw", tmp_path / "cases")
    write_folder(tmp_path / "test", [("The Cat ş.", "Paris ş."), ("PARIS.", "PISICA ţ.")])
    tokenize.run(params, LANGUAGES, tmp_path / "cases", tmp_path / "test", tmp_path / "out")
    assert list(read_folder(tmp_path / "out")) == [("the cat ş .", "Paris ș ."), ("Paris .", "pisica ț .")]


def test_switched_off_nothing_is_learned(tmp_path: Path) -> None:
    """Nothing is read, either: the files exist for DVC but are empty."""
    truecase.run(TOKENIZE, LANGUAGES, tmp_path / "nowhere", tmp_path / "cases")
    assert [path.read_bytes() for path in sorted((tmp_path / "cases").iterdir())] == [b"", b""]
