"""Stage tune: one search over the validation set gives the best alpha."""

from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from convs2s.base.files import read_folder, read_json, write_folder
from convs2s.config.results import TuneParams
from convs2s.config.translate import TranslateSection
from convs2s.decode.translations import read_hypotheses
from convs2s.ids.candidates import Candidates, write_candidates
from convs2s.score.corpus_scores import tokenized_bleu
from convs2s.search.beam_search import BeamSearch
from convs2s.text.vocabulary.codec import Codec
from pipelines.stages import translate, tune
from tests.decode.parrot import TOKENIZE, TRANSLATE, write_vocabulary
from tests.package.small_package import write_model, write_parts
from tests.presets import params_of
from tests.stages.test_translate import write_alpha

RUN = params_of("tatoeba-en-de").run
ALPHAS = [0.0, 0.5, 1.0, 2.0, 4.0]
SOURCES = ["ein Haus .", "Das ist noch eins , und der Hund .", "ein Hund", "Maus", "und die Maus ist aus ."]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Models of two seeds, and a validation set translated by the first with alpha 2."""
    vocabulary = write_vocabulary(tmp_path / "vocabulary")
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
    write_alpha(folder / "fixed" / "1", alpha)
    paths = (*inputs, folder / "fixed", folder / "out")
    none = TOKENIZE.model_copy(update={"tokenizer": "none", "normalize_punctuation": False})
    translate.run(section(alpha, **changes), none, ("en", "de"), [1], RUN, "1", *paths)
    sentences = read_hypotheses(folder / "out" / "1" / "hypotheses.jsonl")
    return [" ".join(hypotheses[0].words) for _, hypotheses in sentences]


def run(folder: Path, member: str = "1", alpha: object = "tuned", **changes: object) -> pd.DataFrame:
    """Run the stage; return the table of scores."""
    names = ("trained", "vocabulary", "candidates", "valid", "development")
    paths = {name: folder / name for name in names} | {"out": folder / "tuned"}
    tune.run(TuneParams(alphas=ALPHAS), section(alpha, **changes), [1, 2], RUN, member, **paths)
    return pd.read_csv(folder / "tuned" / member / "alphas.csv")


def scores(folder: Path, **changes: object) -> list[float]:
    """Return the BLEU of a separate search with each alpha."""
    references = [target for _, target in read_folder(folder / "valid")]
    return [tokenized_bleu(searched(folder, alpha, **changes), references).value for alpha in ALPHAS]


def test_the_table_has_the_scores_of_a_search_with_each_alpha(folders: Path) -> None:
    """Reranking equals another search, since alpha does not change what is searched."""
    table = run(folders)
    expected = scores(folders)
    assert table["alpha"].tolist() == ALPHAS
    assert table["bleu"].tolist() == pytest.approx(expected)
    assert len(set(expected)) > 2
    assert table["length_ratio"].tolist() == pytest.approx([5 / 45, 5 / 45, 9 / 45, 1.0, 1.0])


def test_one_search_suffices_for_all_alphas(folders: Path) -> None:
    """The sentences are two batches; a search for each alpha would take five times as long."""
    with mock.patch.object(BeamSearch, "search", autospec=True, side_effect=BeamSearch.search) as search:
        run(folders)
    assert [call.args[0].params.n_best for call in search.call_args_list] == [8, 8]


def test_of_equally_good_alphas_the_one_nearest_to_1_is_chosen(folders: Path) -> None:
    """Alphas 2 and 4 both find the references; 2 is nearer to 1, which is the mean over tokens."""
    run(folders)
    best = read_json(folders / "tuned" / "1" / "alpha.json")
    assert best == {"alpha": 2.0, "development_bleu": pytest.approx(100.0)}


def test_development_pairs_are_taken_if_there_are_any(folders: Path) -> None:
    """The paper uses newstest2015 this way (§4.3); the validation pairs are then ignored."""
    write_folder(folders / "development", read_folder(folders / "valid"))
    write_folder(folders / "valid", zip(SOURCES, searched(folders, 0.0), strict=True))
    run(folders)
    assert read_json(folders / "tuned" / "1" / "alpha.json")["alpha"] == 2.0


def test_tokens_are_selected_as_in_translation(folders: Path) -> None:
    """Alpha must be the best one with selection; without it, the search finds other scores."""
    table = Candidates(np.array([0, 0, 0, 0, 1, 2]), np.array([6, 7], np.int32))
    write_candidates(folders / "candidates" / "candidates.npz", table)
    selection = {"common": 2, "candidates": 1}
    found = run(folders, selection=selection)["bleu"].tolist()
    assert found == pytest.approx(scores(folders, selection=selection))
    assert found != pytest.approx(run(folders)["bleu"].tolist())


def test_the_ensemble_has_an_alpha_of_its_own(folders: Path) -> None:
    """It is chosen from the ensemble's hypotheses, which differ from those of either model."""
    assert len({run(folders, member).to_csv() for member in ("1", "2", "ensemble")}) == 3


def test_with_a_number_nothing_is_searched(folders: Path) -> None:
    """Not even a model is read; alpha.json has the number."""
    for part in ("trained", "vocabulary", "valid"):
        (folders / part).rename(folders / f"no-{part}")
    for member, alpha in (("1", 1.0), ("1", 0.5), ("ensemble", 1.0)):
        run(folders, member, alpha)
        found = [(folders / "tuned" / member / name).read_bytes() for name in ("alphas.csv", "alpha.json")]
        assert found == [b"alpha,bleu,length_ratio\n", f'{{\n  "alpha": {alpha}\n}}\n'.encode()]


def test_alpha_is_tuned_on_what_the_stage_translate_writes(tmp_path: Path) -> None:
    """Characters that the model never saw are left out and put back here as there."""
    write_parts(tmp_path)
    size = len(Codec.load(tmp_path / "vocabulary", "source").vocabulary)
    write_model(tmp_path / "trained" / "1" / "model", (size, size), 11.84)
    sources = ["ein 🙂 Haus .", "Das Łódź und 🙂"]
    write_folder(tmp_path / "test", [(source, "-") for source in sources])
    write_folder(tmp_path / "valid", zip(sources, searched(tmp_path, 2.0), strict=True))
    write_folder(tmp_path / "development", [])
    assert all("🙂" in target for _, target in read_folder(tmp_path / "valid"))
    assert run(tmp_path)["bleu"].tolist() == pytest.approx(scores(tmp_path))
