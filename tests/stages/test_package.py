"""Stage package: a trained model becomes a folder for users."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import convs2s
from convs2s.config.package import PackageParams
from convs2s.config.replace import ReplaceParams
from convs2s.config.translate import TranslateSection
from convs2s.decode.length_normalization import write_alpha
from convs2s.package.folder import Settings, read_settings
from convs2s.package.folder import write_package as write_folder
from convs2s.text.alignment.candidates import Candidates, write_candidates
from pipelines.stages import package
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import write_parts


def write_package(tmp_path: Path, alpha: object) -> Path:
    """Run the stage for seed 3 of two; return the folder."""
    write_parts(tmp_path)
    write_alpha(tmp_path / "alpha.json", {"alpha": 0.25})
    evaluation = tmp_path / "evaluation"
    evaluation.mkdir()
    metrics = {"seeds": {"3": {"bleu": 12.345, "chrf": 40.0}, "4": {"bleu": 99.0}}}
    (evaluation / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    (evaluation / "signatures.json").write_text('{"bleu": "nrefs:1|case:mixed|tok:13a"}', encoding="utf-8")
    test_set = {"name": "newstest2014", "lines": 2737, "sha256": "0" * 64}
    (evaluation / "test_set.json").write_text(json.dumps(test_set), encoding="utf-8")
    kept = '{"train": {"pairs": 39000, "source_words": 400000, "target_words": 390000}}'
    (tmp_path / "report.json").write_text(kept, encoding="utf-8")
    package.run(
        PackageParams(name="tiny", data_license="MIT"),
        TOKENIZE,
        TranslateSection.model_validate({**TRANSLATE.model_dump(), "alpha": alpha}),
        ReplaceParams(enabled=True),
        ("en", "de"),
        tuple(range(len(package.TRAINING))),
        tmp_path / "model",
        tmp_path / "vocabulary",
        tmp_path / "truecasers",
        tmp_path / "alignment",
        tmp_path / "candidates",
        tmp_path / "alpha.json",
        evaluation,
        tmp_path / "report.json",
        3,
        tmp_path / "models" / "3",
    )
    return tmp_path / "models" / "3"


def test_the_folder_translates_and_its_card_has_the_scores(tmp_path: Path) -> None:
    """The scores are those of this seed, with signatures."""
    folder = write_package(tmp_path, alpha=1.0)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "\n# tiny\n" in card
    assert "| sentence pairs | 39,000, after filtering |" in card
    assert "| words in them | 400,000 source, 390,000 target |" in card
    assert "| `train.batch_by` | 1 |" in card
    assert "| BLEU, detokenized | 12.3" in card
    assert r"`nrefs:1\|case:mixed\|tok:13a`" in card
    assert f"`newstest2014: 2,737 lines, sha256 {'0' * 64}`" in card
    assert "99" not in card
    translator = convs2s.load(folder, "cpu")
    assert len(translator.translate(["ein Haus."])) == 1
    assert translator.dictionary == {"dog": "Hund"}


def test_the_folder_carries_the_number_that_was_tuned(tmp_path: Path) -> None:
    """A user has no validation set; a number in params.yaml is not replaced by a tuned one."""
    assert read_settings(write_package(tmp_path / "tuned", alpha="tuned")).translate.alpha == 0.25
    assert read_settings(write_package(tmp_path / "number", alpha=0.5)).translate.alpha == 0.5


def test_a_folder_includes_its_candidates_and_selects(tmp_path: Path) -> None:
    """Selection follows the packaged setting or the option; without candidates, it is an error."""
    model, vocabulary, dictionary, candidates = write_parts(tmp_path)
    settings = Settings(("en", "de"), TOKENIZE, TRANSLATE, replace=False)
    parts = model, vocabulary, dictionary, candidates
    write_folder(tmp_path / "bare", *parts, settings, "")
    assert not (tmp_path / "bare" / "candidates.npz").exists()
    selection = {"common": 2, "candidates": 3}
    with pytest.raises(FileNotFoundError, match=r"candidates.npz does not exist; vocabulary selection needs"):
        convs2s.load(tmp_path / "bare", "cpu", selection=selection)
    write_candidates(candidates, Candidates(np.array([0, 0, 0, 0, 1]), np.array([5], np.int32)))
    chosen = TRANSLATE.model_validate({**TRANSLATE.model_dump(), "selection": selection})
    write_folder(tmp_path / "own", *parts, replace(settings, translate=chosen), "")
    write_folder(tmp_path / "asked", *parts, settings, "")
    own = convs2s.load(tmp_path / "own", "cpu")
    asked = convs2s.load(tmp_path / "asked", "cpu", selection=selection)
    plain = convs2s.load(tmp_path / "asked", "cpu")
    assert own.translate(["ein Haus."]) == asked.translate(["ein Haus."])
    assert own.words.selection is not None
    assert 5 <= own.words.selection.selected <= 6
    assert plain.words.selection is None
