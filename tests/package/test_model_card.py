"""The model card describes a model from facts alone."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.package.facts import Facts
from convs2s.package.model_card import describe_model, model_card
from tests.package.small_package import edit_settings, write_model

NEWS = Facts(
    "News: Käse 😀", ("en", "de"), "CC BY-NC-SA 4.0", "old | news", 4500000, (116000000, 110000000),
    {"test pairs in it": "3 of 10"}, {"parameters": "1,234,567"}, 7,
    {"train.dropout": 0.2, "train.patience": None, "train.precision": "float32"},
    {"chrf": 50.0, "bleu": 25.163, "length_ratio": 1.0}, {"bleu": "nrefs:1|tok:13a", "chrf": "chrF2"},
    "newstest2014: 2,737 lines, sha256 00", [("A | B", "C")],
)  # fmt: skip


@pytest.mark.parametrize(
    "part",
    [
        "\n---\n\n# News: Käse 😀\n",
        "from English to German.",
        "| languages | English to German |",
        "| sentence pairs | 4,500,000, after filtering |",
        "| words in them | 116,000,000 source, 110,000,000 target |",
        "| test pairs in it | 3 of 10 |\n| parameters | 1,234,567 |\n| seed | 7 |\n",
        '| `train.patience` | null |\n| `train.precision` | "float32" |',
    ],
)
def test_the_card_describes_the_model_and_its_data(part: str) -> None:
    """Readers need to know what it was made from before they use it."""
    assert part in model_card(NEWS)


@pytest.mark.parametrize(
    "part",
    [
        r"| BLEU, detokenized | 25.16 | `nrefs:1\|tok:13a` |",
        "| chrF2 | 50.00 | `chrF2` |",
        "`newstest2014: 2,737 lines, sha256 00`",
    ],
)
def test_scores_of_the_card_have_signature_and_test_set(part: str) -> None:
    """Without them, nobody could compare the scores."""
    assert part in model_card(NEWS)


@pytest.mark.parametrize("part", ["convs2s translate --model", "convs2s.load("])
def test_the_card_says_how_to_use_the_model(part: str) -> None:
    """Whoever finds the folder may know nothing of this project."""
    assert part in model_card(NEWS)


@pytest.mark.parametrize(
    "part",
    [
        r"| training data | News: Käse 😀; old \| news; license: CC BY-NC-SA 4.0 |",
        r"| A \| B | C |",
        r"`nrefs:1\|tok:13a`",
    ],
)
def test_a_bar_does_not_end_a_cell_of_the_cards_tables(part: str) -> None:
    """GitHub and Hugging Face take any bar for the end, even one in a signature."""
    assert part in model_card(NEWS)


def test_the_model_is_described_from_its_files(tmp_path: Path) -> None:
    """Width 8: tables (11 + 13 + 2 * 32) * 8, three encoder and four decoder maps, the softmax layer."""
    square, window = 8 * 8 + 8, 24 * 16 + 16
    tables = (11 + 13 + 2 * 32) * 8
    parameters = tables + (2 * square + window) + (4 * square + window) + (8 * 13 + 13)
    folder = write_model(tmp_path, (11, 13))
    rows = describe_model(folder, "bpe")
    assert rows["parameters"] == f"{parameters:,}, with weight normalization folded in"
    assert rows["vocabulary"] == "bpe; 11 source and 13 target entries"
    changes = {"encoder_widths": [6, 6, 7], "encoder_kernels": [3, 3, 1]}
    rows = describe_model(edit_settings(folder, "model.json", "architecture", **changes), "bpe")
    assert rows["layers"] == "3 encoder, 1 decoder; they see 5 and 3 tokens"
    assert rows["encoder, from the bottom"] == "2 x 6, kernel 3; 1 x 7, kernel 1"
    assert rows["decoder, from the bottom"] == "1 x 8, kernel 3"
    assert rows["embedding"] == "8 channels"


def read_front_matter(card: str) -> dict[str, Any]:
    first, content, _ = card.split("---\n", 2)
    assert first == ""
    return dict(YAML(typ="safe").load(content))


def test_front_matter_has_all_that_the_hub_lists() -> None:
    """Names with a colon, which would begin a YAML mapping, must come back whole."""
    results = {
        "task": {"type": "translation"},
        "dataset": {"type": "news-k-se", "name": "newstest2014: 2,737 lines, sha256 00"},
        "metrics": [
            {"type": "bleu", "name": "BLEU, detokenized", "value": 25.16},
            {"type": "chrf", "name": "chrF2", "value": 50.0},
        ],
    }
    assert read_front_matter(model_card(NEWS)) == {
        "language": ["en", "de"], "license": "cc-by-nc-sa-4.0", "library_name": "convs2s",
        "pipeline_tag": "translation", "tags": ["convs2s", "fconv", "arxiv:1705.03122"],
        "metrics": ["bleu", "chrf"], "model-index": [{"name": "News: Käse 😀", "results": [results]}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data_license", "expected"),
    [
        ("MIT", {"license": "mit"}),
        ("see x.org; research", {"license": "other", "license_name": "see-x.org-research"}),
        ("?", {"license": "other", "license_name": "unknown"}),
    ],
)
def test_a_model_of_one_language_without_scores(data_license: str, expected: dict[str, str]) -> None:
    """It is a summarizer, and has no table; the Hub takes an unknown license only as `other` with a name."""
    changes: dict[str, Any] = {"languages": ("en", "en"), "domain": None, "scores": {}}
    facts = dataclasses.replace(NEWS, data_license=data_license, **changes)
    summary = f"English to English, trained on 4,500,000 sentence pairs (license: {data_license})"
    assert facts.summary() == summary
    card = model_card(facts)
    assert not [word for word in ("Scores", "newstest", "model-index", "metrics") if word in card]
    content = read_front_matter(card)
    assert (content["language"], content["pipeline_tag"]) == (["en"], "summarization")
    assert content.items() >= expected.items()
