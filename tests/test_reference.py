"""The page of all parameters, made from the schema."""

import re

import pytest

from convs2s.config.load import flatten_values, parse_yaml
from pipelines.preset import EXPERIMENTS
from pipelines.reference import PAGE, write_page

STAGES = parse_yaml((EXPERIMENTS.parent / "dvc.yaml").read_text(encoding="utf-8"), "dvc.yaml")["stages"]
PICTURE = EXPERIMENTS.parent / "docs" / "pictures" / "pipeline.svg"


def test_the_page_has_every_parameter_with_its_meaning() -> None:
    """A line has the key, its values, default and meaning; after a change: python -m pipelines.reference."""
    assert PAGE.read_text(encoding="utf-8") == write_page()
    base = parse_yaml((EXPERIMENTS / "base.yaml").read_text(encoding="utf-8"), "base.yaml")
    lines = dict(re.findall(r"^- `([\w.]+)`: (.+; default `.*`\. \S.*)$", write_page(), re.MULTILINE))
    assert set(flatten_values(base)) == set(lines)
    default = f"number (at least 0, below 1); default `{base['train']['dropout']}`. Probability"
    assert lines["train.dropout"].startswith(default)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("train.batch_by", "`sentences` or `tokens`"),
        ("translate.alpha", "number (at least 0, at most 10) or `tuned`"),
        ("model.attention", "list, not empty: true or false"),
        ("columns", "list of 2: integer (at least 0) or null"),
        ("train.selection", "keys of [SelectionParams](#selectionparams) or null"),
    ],
)
def test_values_are_put_into_words(key: str, text: str) -> None:
    """Readers of the page should not need to know JSON Schema."""
    assert re.search(rf"^- `{re.escape(key)}`: {re.escape(text)}[;.]", write_page(), re.MULTILINE)


def test_the_picture_of_the_pipeline_has_every_stage() -> None:
    """It is a drawing: after an edit of dvc.yaml, draw it again."""
    text = PICTURE.read_text(encoding="utf-8")
    stages = {name for name in STAGES if not name.endswith("ensemble")}
    assert {name for name in STAGES if f">{name}</text>" in text} == stages
