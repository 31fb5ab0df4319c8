"""Stage package: a trained model becomes a folder for users."""

from pathlib import Path

import convs2s
from convs2s.base.files import write_json, write_lines
from convs2s.config.results import PackageParams, ReplaceParams
from convs2s.config.translate import TranslateSection
from convs2s.package.folder import read_settings
from pipelines.stages import package
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import write_parts
from tests.presets import params_of


def run(folder: Path, alpha: object) -> Path:
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
        PackageParams(name="tiny", data_license="MIT", domain="tests"),
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


def test_the_folder_translates_and_its_card_has_the_scores(tmp_path: Path) -> None:
    """The scores are those of this seed, with signatures."""
    folder = run(tmp_path, alpha=1.0)
    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in (
        "| words in them | 400,000 source, 390,000 target |",
        "| test pairs in it | 2 of 2,737, and 3 of their source sentences |",
        "| translated by models | 1,234 of the pairs |",
        r"| warnings | valid: 9 pairs of 9 look swapped; train: a \| b |",
        '| `train.batch_by` | "tokens" |',
        "| BLEU, detokenized | 12.3",
        r"`nrefs:1\|case:mixed\|tok:13a`",
        f"`newstest2014: 2,737 lines, sha256 {'0' * 64}`",
    ):
        assert part in card
    assert "98.7" not in card
    translator = convs2s.load(folder, "cpu")
    assert len(translator.translate(["ein Haus."])) == 1
    assert translator.dictionary == {"dog": "Hund"}
    assert translator.facts is not None
    assert translator.facts.summary().endswith(
        "39,000 sentence pairs of tests (license: MIT); 12.3 BLEU on its test set"
    )
    assert translator.facts.examples == [('A "house.', 'Ein "Haus.')]


def test_the_folder_carries_the_number_that_was_tuned(tmp_path: Path) -> None:
    """Users of the folder have no validation set, so they could not tune alpha themselves."""
    assert read_settings(run(tmp_path, alpha="tuned")).translate.alpha == 0.25
