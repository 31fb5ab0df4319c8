"""Stage tune: one search over the validation set gives the best alpha."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convs2s.config.translate import TranslateSection
from convs2s.config.tune import TuneParams
from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.length_normalization import best_alpha
from convs2s.decode.translations import read_hypotheses
from convs2s.score.corpus_scores import tokenized_bleu
from convs2s.text.alignment.candidates import Candidates, write_candidates
from convs2s.text.corpus.files import write_folder
from convs2s.text.vocabulary.codec import Codec
from pipelines.stages import translate, tune
from tests.decode.parrot import TOKENIZE, TRANSLATE, write_word_vocabulary
from tests.package.small_package import write_model

ALPHAS = [0.0, 0.5, 1.0, 2.0, 4.0]
SOURCES = ["ein Haus .", "Das ist noch eins , und der Hund .", "ein Hund", "Maus", "und die Maus ist aus ."]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Models of two seeds, and a validation set translated by the first with alpha 2."""
    vocabulary = write_word_vocabulary(tmp_path / "vocabulary")
    size = len(Codec.load(vocabulary, "source").vocabulary)
    for seed, phase in ((1, 11.84), (2, 4.07)):
        write_model(tmp_path / "trained" / str(seed) / "model", (size, size), phase)
    write_folder(tmp_path / "test", [(source, "-") for source in SOURCES])
    write_folder(tmp_path / "valid", zip(SOURCES, searched(tmp_path, 2.0), strict=True))
    write_folder(tmp_path / "development", [])
    return tmp_path


def section(alpha: object, **changes: object) -> TranslateSection:
    changes = {"beam_size": 8, "min_length": 1, "alpha": alpha, **changes}
    return TranslateSection.model_validate({**TRANSLATE.model_dump(), **changes})


def searched(folder: Path, alpha: float, **changes: object) -> list[str]:
    """Run a separate search with the stage translate; return the best hypotheses."""
    inputs = [folder / name for name in ("trained", "vocabulary", "candidates", "truecasers", "test")]
    paths = (*inputs, folder / "no.json", folder / "out")
    none = TOKENIZE.model_copy(update={"tokenizer": "none", "normalize_punctuation": False})
    translate.run(section(alpha, **changes), none, ("en", "de"), [1], "1", *paths)
    sentences = read_hypotheses(folder / "out" / "hypotheses.jsonl")
    return [" ".join(hypotheses[0].words) for _, hypotheses in sentences]


def run(
    folder: Path, member: str, alpha: object = "tuned", seeds: tuple[int, ...] = (1, 2), **changes: object
) -> Path:
    out = folder / "tuned" / member
    names = ("trained", "vocabulary", "candidates", "valid", "development")
    trained, vocabulary, candidates, valid, development = (folder / name for name in names)
    inputs = (trained, vocabulary, candidates, valid, development)
    tune.run(TuneParams(alphas=ALPHAS), section(alpha, **changes), list(seeds), member, *inputs, out)
    return out


def test_the_table_has_the_scores_of_a_search_with_each_alpha(folders: Path) -> None:
    """One search suffices. Alpha 2 finds the references, and so does 4: 2 wins as it is closer to 1."""
    out = run(folders, "1")
    references = searched(folders, 2.0)
    table = pd.read_csv(out / "alphas.csv")
    assert table["alpha"].tolist() == ALPHAS
    wanted = [tokenized_bleu(searched(folders, alpha), references).value for alpha in ALPHAS]
    assert table["bleu"].tolist() == pytest.approx(wanted)
    assert len(set(wanted)) > 2
    chosen = json.loads((out / "alpha.json").read_text())
    assert chosen == {"alpha": 2.0, "development_bleu": pytest.approx(100.0)}
    assert table["length_ratio"].tolist() == pytest.approx([5 / 45, 5 / 45, 9 / 45, 1.0, 1.0])
    assert chosen["alpha"] == best_alpha(dict(zip(ALPHAS, wanted, strict=True)))


def test_development_pairs_are_taken_if_there_are_any(folders: Path) -> None:
    """The paper uses newstest2015 this way (§4.3); the validation pairs are then ignored."""
    (folders / "development").rename(folders / "none")
    (folders / "valid").rename(folders / "development")
    write_folder(folders / "valid", zip(SOURCES, searched(folders, 0.0), strict=True))
    assert json.loads((run(folders, "1") / "alpha.json").read_text())["alpha"] == 2.0
    shutil.rmtree(folders / "development")
    (folders / "none").rename(folders / "development")
    assert json.loads((run(folders, "1") / "alpha.json").read_text())["alpha"] == 1.0


def test_tokens_are_selected_as_in_translation(folders: Path) -> None:
    """Alpha must be the best one with selection; without it, the search finds other scores."""
    table = Candidates(np.array([0, 0, 0, 0, 1, 2]), np.array([6, 7], np.int32))
    write_candidates(folders / "candidates" / "candidates.npz", table)
    selection = {"common": 2, "candidates": 1}
    references = searched(folders, 2.0)
    scores = pd.read_csv(run(folders, "1", selection=selection) / "alphas.csv")["bleu"].tolist()
    wanted = [
        tokenized_bleu(searched(folders, alpha, selection=selection), references).value for alpha in ALPHAS
    ]
    assert scores == pytest.approx(wanted)
    assert scores != pytest.approx(pd.read_csv(run(folders, "1") / "alphas.csv")["bleu"].tolist())


def test_all_alphas_share_one_search(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five sentences are two batches, whatever the number of alphas."""
    calls: list[int] = []
    search = BeamSearch.search

    def count(self: BeamSearch, *arguments: object) -> object:
        calls.append(self.n_best)
        return search(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(BeamSearch, "search", count)
    run(folders, "1")
    assert calls == [8, 8]


def test_the_ensemble_has_an_alpha_of_its_own(folders: Path) -> None:
    """It is chosen from the ensemble's hypotheses, which differ from those of either model."""
    tables = [(run(folders, member) / "alphas.csv").read_bytes() for member in ("1", "2", "ensemble")]
    assert len(set(tables)) == 3


def test_with_a_number_nothing_is_searched(folders: Path) -> None:
    """Not even a model is read; the files are the same for any number, so they cause no reruns."""
    for part in ("trained", "vocabulary", "valid"):
        (folders / part).rename(folders / f"no-{part}")
    for member in ("1", "ensemble"):
        contents = []
        for alpha in (1.0, 0.5):
            out = run(folders, member, alpha)
            contents.append([(out / name).read_bytes() for name in ("alphas.csv", "alpha.json")])
        assert contents[0] == contents[1] == [b"alpha,bleu,length_ratio\n", b"{}\n"]
