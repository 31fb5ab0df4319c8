"""Stage package: a trained model becomes a folder for users."""

from pathlib import Path

import pytest

import convs2s
from convs2s.base.files import write_json, write_lines
from convs2s.config.results import PackageParams, ReplaceParams
from convs2s.config.translate import TranslateSection
from convs2s.package.folder import read_settings
from pipelines.stages import package
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import write_parts
from tests.presets import params_of


def run(folder: Path, alpha: object, splits: bool = True) -> Path:
    """Run the stage for seed 3 of two; return the model folder."""
    model, vocabulary, dictionary, table = write_parts(folder)
    (folder / "trained" / "3").mkdir(parents=True)
    model.rename(folder / "trained" / "3" / "model")
    metrics = {"seeds": {"3": {"bleu": 12.345, "chrf": 40.0}, "4": {"bleu": 98.7}}}
    for name, content in {
        "evaluation/metrics.json": metrics,
        "trained/3/metrics.json": {"precision": "bfloat16"},
        "tuned/3/alpha.json": {"alpha": 0.25},
        "evaluation/signatures.json": {"bleu": "nrefs:1|case:mixed|tok:13a"},
        "evaluation/test_set.json": {"name": "newstest2014", "lines": 2737, "sha256": "0" * 64},
        "report.json": {
            "train": {"pairs": 39000, "source_words": 400000, "target_words": 390000},
            "overlap": {"test": {"pairs": 2, "sources": 3, "of": 2737}},
            "translated": 1234,
            "warnings": ["valid: 9 pairs of 9 look swapped", "train: a | b"],
        },
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_json(folder / name, content)
    examples = ["line\tmodel\tsource\thypothesis\treference", '3\t4\tA "house.\tEins.\tEin "Haus.']
    write_lines(folder / "evaluation" / "examples.tsv", examples)
    package.run(
        PackageParams(name="tiny", data_license="MIT", domain="tests", split_sentences=splits),
        TOKENIZE,
        TranslateSection.model_validate({**TRANSLATE.model_dump(), "alpha": alpha}),
        ReplaceParams(enabled=True),
        languages=("en", "de"),
        train=params_of("tatoeba-en-de").train,
        trained=folder / "trained",
        vocabulary=vocabulary,
        truecasers=folder / "truecasers",
        alignment=dictionary.parent,
        candidates=table.parent,
        tuned=folder / "tuned",
        evaluation=folder / "evaluation",
        filtering=folder / "report.json",
        seed=3,
        out=folder / "models",
    )
    return folder / "models" / "3"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of seed 3, which no test changes."""
    return run(tmp_path_factory.mktemp("package"), alpha=1.0)


def test_the_card_describes_the_data_and_the_training(model: Path) -> None:
    """Whoever finds the model must learn what data it was made from, and what is wrong with it."""
    card = (model / "README.md").read_text(encoding="utf-8")
    for part in (
        "| words in them | 400,000 source, 390,000 target |",
        "| test pairs in it | 2 of 2,737, and 3 of their source sentences |",
        "| translated by models | 1,234 of the pairs |",
        r"| warnings | valid: 9 pairs of 9 look swapped; train: a \| b |",
        '| `train.batch_by` | "tokens" |',
    ):
        assert part in card


def test_the_scores_of_the_card_are_those_of_its_seed(model: Path) -> None:
    """Another seed has another model. A score without signature and test set says little."""
    card = (model / "README.md").read_text(encoding="utf-8")
    assert "| BLEU, detokenized | 12.3" in card
    assert r"`nrefs:1\|case:mixed\|tok:13a`" in card
    assert f"`newstest2014: 2,737 lines, sha256 {'0' * 64}`" in card
    assert "98.7" not in card


def test_the_folder_translates_with_its_dictionary(model: Path) -> None:
    """Users copy only this folder."""
    translator = convs2s.load(model, "cpu")
    assert len(translator.translate(["ein Haus."])) == 1
    assert translator.dictionary == {"dog": "Hund"}


def test_the_folder_has_facts_and_examples(model: Path) -> None:
    """The server's page shows them."""
    facts = convs2s.load(model, "cpu").facts
    assert facts is not None
    assert facts.summary().endswith(
        "39,000 sentence pairs of tests (license: MIT); 12.3 BLEU on its test set"
    )
    assert facts.examples == [('A "house.', 'Ein "Haus.')]


def test_the_folder_carries_the_number_that_was_tuned(tmp_path: Path) -> None:
    """Users of the folder have no validation set, so they could not tune alpha themselves."""
    assert read_settings(run(tmp_path, alpha="tuned")).translate.alpha == 0.25


def test_the_folder_says_whether_its_users_texts_are_split(tmp_path: Path, model: Path) -> None:
    """A model for headlines takes a text as a whole, wherever it is used."""
    folders = model, run(tmp_path, 1.0, splits=False)
    assert [read_settings(folder).translate.split_sentences for folder in folders] == [True, False]
