"""`convs2s candidates`, and translation with its file, for an imported model without candidates."""

from pathlib import Path

import pytest
import torch

from convs2s.cli import main
from convs2s.ids.candidates import read_candidates
from convs2s.ids.vocabulary import SPECIALS
from convs2s.package.translator import SELECTION, load

TEXTS = 8


def test_each_sentence_gets_only_the_words_it_is_aligned_with(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word i of the target translates word i of the source: only these and the common words are allowed.

    `translate --candidates` reads the file that the command writes, and refuses any other file.
    """
    words = load(plain, "cpu").words
    codecs = words.source, words.target
    assert len(words.target.vocabulary) < SELECTION.common, "else the common ones must be fewer"
    entries = [codec.vocabulary.entries[3 : 3 + 3 * TEXTS] for codec in codecs]  # no word is repeated
    texts, translations = ([" ".join(side[3 * i : 3 * i + 3]) for i in range(TEXTS)] for side in entries)
    files = source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    for file, lines in zip(files, (texts, translations), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    out, new = tmp_path / "candidates.npz", tmp_path / "new.txt"
    options = ["--source", str(source), "--target", str(target), "--output", str(out)]
    assert main(["candidates", "--model", str(plain), *options]) == 0
    assert "8 pairs: " in capsys.readouterr().err
    found = read_candidates(out)
    for text, translation in zip(texts, translations, strict=True):
        ids = torch.tensor(codecs[0].encode(text.split())[:-1]).numpy()
        assert set(found.of(ids).tolist()) <= set(codecs[1].encode(translation.split())[:-1])
    selective = load(plain, "cpu", candidates=out, selection={"common": 1, "candidates": 5})
    [[best]] = selective.translate_n_best(texts[:1])
    common = map(codecs[1].vocabulary.entry, range(len(SPECIALS) + 1))
    assert set(best.tokens) <= {*common, *entries[1][:3]}
    assert load(plain, "cpu", candidates=out).words.params.selection == SELECTION
    assert {path.name for path in tmp_path.iterdir()} == {"candidates.npz", "source.txt", "target.txt"}
    command = ["translate", "--model", str(plain), "--device", "cpu", "--input", str(source)]
    assert main([*command, "--output", str(new), "--candidates", str(source)]) == 2
    assert main([*command, "--output", str(new), "--candidates", str(out)]) == 0
    assert len(new.read_text(encoding="utf-8").splitlines()) == TEXTS
