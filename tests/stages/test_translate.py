"""Stages translate and ensemble@all: raw test sentences -> hypotheses.jsonl and attention.npz."""

import re
from pathlib import Path

import numpy as np
import pytest

from convs2s.config.translate import TranslateSection
from convs2s.decode.length_normalization import write_alpha
from convs2s.decode.translations import read_attention, read_hypotheses
from convs2s.text.alignment.candidates import Candidates, write_candidates
from convs2s.text.corpus.files import write_lines
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.vocabulary import EOS, UNK
from pipelines.stages import translate
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import write_model, write_parts

LANGUAGES = ("en", "de")
LINES = ["ein Haus.", "", "Das ist noch eins, und der Hund.", "ein\u2028Hund", "Maus"]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Models of two seeds in trained/, a vocabulary and a test set."""
    model, *_ = write_parts(tmp_path)
    (tmp_path / "trained" / "1").mkdir(parents=True)
    model.rename(tmp_path / "trained" / "1" / "model")
    size = len((tmp_path / "vocabulary" / "source.tsv").read_text(encoding="utf-8").split("\n")) - 1 + 3
    write_model(tmp_path / "trained" / "2" / "model", (size, size), phase=1.0)
    write_lines(tmp_path / "test" / "source.txt", LINES)
    return tmp_path


def section(**changes: object) -> TranslateSection:
    return TranslateSection.model_validate({**TRANSLATE.model_dump(), **changes})


def run_member(folders: Path, seeds: list[int], member: str, out: str, **changes: object) -> Path:
    inputs = [folders / name for name in ("trained", "vocabulary", "candidates", "truecasers", "test")]
    paths = (*inputs, folders / "alpha.json", folders / out)
    translate.run(section(**changes), TOKENIZE, LANGUAGES, seeds, member, *paths)
    return folders / out


def run_translate(folders: Path, seed: int, out: str, **changes: object) -> Path:
    return run_member(folders, [seed], str(seed), out, **changes)


def run_ensemble(folders: Path, seeds: list[int], **changes: object) -> Path:
    return run_member(folders, seeds, "ensemble", "ensemble", **changes)


def test_there_is_a_sentence_for_each_line(folders: Path) -> None:
    """Sentences are in order and tokenized, with attention of matching shape."""
    out = run_translate(folders, 1, "out", n_best=2)
    sentences = list(read_hypotheses(out / "hypotheses.jsonl"))
    attention = read_attention(out / "attention.npz")
    assert [len(words) for words, _ in sentences] == [3, 0, 9, 2, 1]
    assert sentences[0][0] == ["ein", "Haus", "."]
    assert [len(hypotheses) for _, hypotheses in sentences] == [2, 1, 2, 2, 2]
    for (_, hypotheses), heat in zip(sentences, attention, strict=True):
        assert heat.target == hypotheses[0].tokens
        assert heat.weights.shape == (len(heat.target), len(heat.source))
        assert heat.weights.sum() == pytest.approx(len(heat.target), abs=0.1)  # rows sum to 1


def test_the_same_input_gives_the_same_bytes(folders: Path) -> None:
    """DVC hashes them. Other batches may change the last digits of sums, which are not in the files."""
    one, other = run_translate(folders, 1, "one"), run_translate(folders, 1, "other", batch_sentences=1)
    assert (one / "hypotheses.jsonl").read_bytes() == (other / "hypotheses.jsonl").read_bytes()
    again = run_translate(folders, 1, "again")
    assert (one / "attention.npz").read_bytes() == (again / "attention.npz").read_bytes()


def test_an_ensemble_is_of_the_seeds_named_and_no_other(folders: Path) -> None:
    """Table 2 has ensembles of 8 and of 10: 10 trained models can serve both."""
    vocabulary = folders / "vocabulary" / "source.tsv"
    size = len(vocabulary.read_text(encoding="utf-8").split("\n")) - 1 + 3
    two = (run_ensemble(folders, [1, 2]) / "hypotheses.jsonl").read_bytes()
    write_model(folders / "trained" / "3" / "model", (size, size), phase=2.0)
    assert (run_ensemble(folders, [1, 2]) / "hypotheses.jsonl").read_bytes() == two
    assert (run_ensemble(folders, [1, 2, 3]) / "hypotheses.jsonl").read_bytes() != two


def test_a_tuned_alpha_is_that_of_the_stage_tune(folders: Path) -> None:
    """The translations equal those with this alpha as a number."""
    write_alpha(folders / "alpha.json", {"alpha": 0.25})
    for name in ("hypotheses.jsonl", "attention.npz"):
        one = [
            (run_translate(folders, 1, "out", n_best=2, alpha=alpha) / name).read_bytes()
            for alpha in ("tuned", 0.25, 1.0)
        ]
        together = [
            (run_ensemble(folders, [1, 2], n_best=2, alpha=alpha) / name).read_bytes()
            for alpha in ("tuned", 0.25, 1.0)
        ]
        assert one[0] == one[1]
        assert together[0] == together[1]
        if name == "hypotheses.jsonl":  # with scores
            assert one[0] != one[2]
            assert together[0] != together[2]


def write_some_candidates(folders: Path) -> None:
    """Give every source token itself and the preceding token as candidates."""
    size = len((folders / "vocabulary" / "source.tsv").read_text(encoding="utf-8").split("\n")) - 1 + 3
    targets = [target for token in range(3, size) for target in (token, max(3, token - 1))]
    offsets = np.maximum(np.arange(size + 1) - 3, 0) * 2
    write_candidates(
        folders / "candidates" / "candidates.npz", Candidates(offsets, np.array(targets, np.int32))
    )


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("members", [1, 2])
def test_selecting_the_whole_vocabulary_changes_no_byte(folders: Path, beam_size: int, members: int) -> None:
    """Hypotheses, scores and attention equal those of plain search, for a model and for an ensemble."""
    write_some_candidates(folders)
    outs = list[Path]()
    for selection in (None, {"common": 1000, "candidates": 1}):
        changes = {"beam_size": beam_size, "n_best": beam_size, "selection": selection}
        if members == 1:
            outs.append(run_translate(folders, 1, f"out{len(outs)}", **changes))
        else:
            run_ensemble(folders, [1, 2], **changes).rename(folders / f"out{len(outs)}")
            outs.append(folders / f"out{len(outs)}")
    for name in ("hypotheses.jsonl", "attention.npz"):
        assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes(), name


def test_only_selected_tokens_are_written(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each sentence is a batch here; the mean number of tokens is reported."""
    write_some_candidates(folders)
    selection = {"common": 0, "candidates": 2}
    plain = run_translate(folders, 1, "plain", batch_sentences=1)
    assert capsys.readouterr().err.count("vocabulary selection") == 0
    out = run_translate(folders, 1, "out", batch_sentences=1, selection=selection)
    assert re.search(
        r"the output layer had \d+ of \d+ tokens, averaged over 4 batches", capsys.readouterr().err
    )
    source, target = (Codec.load(folders / "vocabulary", side) for side in ("source", "target"))
    for words, hypotheses in read_hypotheses(out / "hypotheses.jsonl"):
        ids = source.encode(words)
        allowed = {EOS, UNK, *(i for id_ in ids[:-1] for i in (id_, max(3, id_ - 1)))}
        for hypothesis in hypotheses:
            names = {target.vocabulary.entry(i) for i in allowed}
            assert set(hypothesis.tokens) <= names
    assert (plain / "hypotheses.jsonl").read_bytes() != (out / "hypotheses.jsonl").read_bytes()


def test_selection_without_candidates_is_an_error(folders: Path) -> None:
    """The stage candidates writes none unless align.candidates is set."""
    with pytest.raises(ValueError, match=r"candidates.npz holds no candidates.*Set align.candidates"):
        run_translate(folders, 1, "out", selection={"common": 9, "candidates": 1})


def test_tokens_are_written_with_the_ids_of_the_vocabulary(folders: Path) -> None:
    """The search renumbers selected tokens; with only the last two as candidates, those are written."""
    vocabulary = Codec.load(folders / "vocabulary", "target").vocabulary
    last = [len(vocabulary) - 2, len(vocabulary) - 1]
    everyone = np.arange(len(vocabulary) + 1) * 2
    candidates = Candidates(everyone, np.array(last * len(vocabulary), np.int32))
    write_candidates(folders / "candidates" / "candidates.npz", candidates)
    out = run_translate(folders, 1, "out", min_length=4, selection={"common": 0, "candidates": 2})
    sentences = list(read_hypotheses(out / "hypotheses.jsonl"))
    found = {token for _, hypotheses in sentences for one in hypotheses for token in one.tokens}
    wanted = {vocabulary.entry(id_) for id_ in last}
    assert found & wanted
    assert found <= wanted | {vocabulary.entry(EOS), vocabulary.entry(UNK)}
