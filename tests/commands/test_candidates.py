"""`convs2s candidates`, and translation with its file, for an imported model without candidates."""

from pathlib import Path

import pytest
import torch

from convs2s.cli import main
from convs2s.package.translator import SELECTION, load
from convs2s.text.alignment.candidates import read_candidates
from convs2s.text.vocabulary.vocabulary import SPECIALS
from tests.golden import import_command, write_checkpoint, write_dictionaries

TEXTS = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Import a golden model of fairseq."""
    folder = tmp_path_factory.mktemp("candidates")
    file = write_checkpoint(folder / "model.pt", "plain")
    out = folder / "model"
    assert import_command(file, write_dictionaries(folder), out, "--tokenizer", "none") == 0
    return out


@pytest.fixture(scope="module")
def texts(model: Path) -> list[str]:
    """Return sentences of source words; no two sentences share a word."""
    words = load(model, "cpu").words.source.vocabulary.entries[3:]
    return [" ".join(words[3 * i : 3 * i + 3]) for i in range(TEXTS)]


def write_pairs(folder: Path, texts: list[str], translations: list[str]) -> tuple[Path, Path]:
    """Write both sides of parallel text."""
    files = folder / "source.txt", folder / "target.txt"
    for file, lines in zip(files, (texts, translations), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return files


def test_each_sentence_gets_only_the_words_it_is_aligned_with(
    model: Path, texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word i of the target translates word i of the source: only these and the common words are allowed."""
    codec = load(model, "cpu").words.target
    common = SELECTION.common
    assert len(codec.vocabulary) < common, "else the common ones must be fewer for this test"
    wanted = codec.vocabulary.entries[3 : 3 + 3 * TEXTS]
    translations = [" ".join(wanted[3 * i : 3 * i + 3]) for i in range(TEXTS)]
    source, target = write_pairs(tmp_path, texts, translations)
    out = tmp_path / "candidates.npz"
    options = ["--source", str(source), "--target", str(target), "--output", str(out)]
    assert main(["candidates", "--model", str(model), *options]) == 0
    assert "8 pairs: " in capsys.readouterr().err
    found = read_candidates(out)
    words = load(model, "cpu").words.source
    for text, translation in zip(texts, translations, strict=True):
        ids = torch.tensor(words.encode(text.split())[:-1]).numpy()
        assert set(found.of(ids).tolist()) <= set(codec.encode(translation.split())[:-1])
    selective = load(model, "cpu", candidates=out, selection={"common": 1, "candidates": 5})
    [[best]] = selective.translate_n_best(texts[:1])
    allowed = {*map(codec.vocabulary.entry, range(len(SPECIALS) + 1)), *wanted[:3]}
    assert set(best.tokens) <= allowed
    assert load(model, "cpu", candidates=out).words.params.selection == SELECTION
    assert sorted(path.name for path in tmp_path.iterdir()) == ["candidates.npz", "source.txt", "target.txt"]


def test_the_command_translates_with_candidates(model: Path, texts: list[str], tmp_path: Path) -> None:
    """`translate --candidates` reads the file that the command writes, and refuses any other file."""
    source, target = write_pairs(tmp_path, texts, texts)
    files = ["--input", str(source), "--output", str(target), "--device", "cpu"]
    command = ["translate", "--model", str(model), *files, "--candidates"]
    assert main([*command, str(source)]) == 2
    out = tmp_path / "candidates.npz"
    pairs = ["--source", str(source), "--target", str(source)]
    assert main(["candidates", "--model", str(model), *pairs, "--output", str(out)]) == 0
    assert main([*command, str(out)]) == 0
    assert len(target.read_text(encoding="utf-8").splitlines()) == TEXTS
