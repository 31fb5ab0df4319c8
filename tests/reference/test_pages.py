"""The documentation pages that are generated from code."""

import argparse
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.config.params import Params
from pipelines.reference.__main__ import ROOT, pages
from pipelines.reference.commands import rows
from pipelines.reference.reruns import first_stages
from pipelines.reference.types import kind

STAGES = YAML(typ="safe", pure=True).load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def test_the_pages_are_up_to_date() -> None:
    """After an edit of the schema, of dvc.yaml or of a command's options, run `make reference`."""
    stale = [path.name for path, text in pages().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: make reference"


@pytest.mark.parametrize(
    ("key", "stages"),
    [
        ("download.folder", ["download"]),
        ("tokenize.lowercase", ["truecase"]),
        ("align.iterations", ["align", "candidates"]),
        ("train.seeds", ["train"]),
        ("train.dropout", ["train"]),
        ("train.rendezvous", []),
        ("translate.beam_size", ["tune", "tune-ensemble"]),
        ("evaluate.ensembles", ["tune-ensemble"]),
        ("evaluate.examples", ["evaluate"]),
        ("package.name", ["package"]),
    ],
)
def test_a_key_reruns_the_stages_that_depend_on_it(key: str, stages: list[str]) -> None:
    """Only the first ones, not those downstream, are named; tests/test_affected_stages.py asks DVC itself."""
    assert first_stages(key, STAGES) == stages


@pytest.mark.parametrize(
    ("section", "key", "text"),
    [
        ("TrainParams", "dropout", "number (at least 0, below 1)"),
        ("TrainParams", "anneal_after_epoch", "integer (at least 1) or null"),
        ("TrainParams", "batch_by", "`sentences` or `tokens`"),
        ("TranslateSection", "alpha", "number (at least 0, at most 10) or `tuned`"),
        ("ModelParams", "attention", "list, not empty: true or false"),
        ("FilesSource", "columns", "list of 2: integer (at least 0) or null"),
        ("MtdataSource", "sha256", "mapping to text (as `^[0-9a-f]{64}$`)"),
        ("TrainParams", "selection", "keys of [SelectionParams](#selectionparams) or null"),
    ],
)
def test_values_are_put_into_words(section: str, key: str, text: str) -> None:
    """Readers of the page should not need to know JSON Schema."""
    classes: dict[str, Any] = Params.model_json_schema()["$defs"]
    assert kind(classes[section]["properties"][key]) == text


def test_an_option_is_written_as_it_is_typed() -> None:
    """A row has flags, value, whether it is required, and the default where --help shows it."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", nargs="+", required=True, metavar="DIR", help="a <folder>")
    parser.add_argument("--port", type=int, default=5000, metavar="N", help="any")
    parser.add_argument("--best", action=argparse.BooleanOptionalAction, default=True, help="the *best*")
    found = [list(row.values()) for row in rows(parser._action_groups[1], parser)]
    assert found == [
        ["`--model DIR...`", "yes", r"a \<folder>"],
        ["`--port N`", "", "any (default: 5000)"],
        ["`--best, --no-best`", "", r"the \*best\* (default: True)"],
    ]
