"""The model card describes a model, from facts alone."""

import dataclasses
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

from convs2s.package.model_card import Facts, Sizes, model_card, read_sizes
from tests.package.small_package import write_model


def facts(scores: dict[str, float]) -> Facts:
    sizes = Sizes(parameters=1234567, layers=(15, 5), seen=(31, 21), entries=(40003, 39000))
    return Facts(
        "news", ("en", "de"), "CC0", sizes, "bpe", 7, scores, {"bleu": "nrefs:1|tok:13a", "chrf": "chrF2"},
        "newstest2014: 2,737 lines, sha256 00",
    )  # fmt: skip


def test_card_describes_the_model_its_scores_and_its_use() -> None:
    """Languages, data, licence, sizes, scores with their signatures, and use."""
    card = model_card(facts({"bleu": 25.163, "chrf": 50.0, "length_ratio": 1.0}))
    assert card.startswith("# news\n")
    for part in (
        "from en to de",
        "license: CC0",
        "1,234,567",
        "15 encoder, 5 decoder; they see 31 and 21 tokens",
        "bpe; 40,003 source types, 39,000 target types",
        "| seed | 7 |",
        "`newstest2014: 2,737 lines, sha256 00`",
        "| chrF2 | 50.00 | `chrF2` |",
        "convs2s translate --model",
        "convs2s.load(",
    ):
        assert part in card
    assert "length_ratio" not in card


def test_rendered_a_score_and_its_signature_have_a_row() -> None:
    """By the tables of GitHub and Hugging Face: a bar in a signature, or in a name, ends no cell."""
    assert ["BLEU, detokenized", "25.16", "nrefs:1|tok:13a"] in cells(facts({"bleu": 25.163}))
    named = dataclasses.replace(facts({}), name="news|talks", data_license="CC0 | MIT")
    assert ["training data", "news|talks; license: CC0 | MIT"] in cells(named)


def cells(of: Facts) -> list[list[str]]:
    """Return the text of the cells of all rows that a reader sees."""
    rows: list[list[str]] = []
    for before, token in pairwise(MarkdownIt("commonmark").enable("table").parse(model_card(of))):
        if token.type == "tr_open":
            rows.append([])
        elif before.type == "td_open":
            rows[-1].append("".join(child.content for child in token.children or ()))
    return rows


def test_card_without_scores_has_no_table() -> None:
    """Rather than an empty one."""
    assert "Scores" not in model_card(facts({}))
    assert "newstest" not in model_card(facts({}))


def test_sizes_are_read_from_the_files(tmp_path: Path) -> None:
    """Width 8: tables (11 + 13 + 2 * 32) * 8, three encoder and four decoder maps, the softmax layer."""
    sizes = read_sizes(write_model(tmp_path, (11, 13)))
    square, window = 8 * 8 + 8, 24 * 16 + 16
    tables = (11 + 13 + 2 * 32) * 8
    assert sizes.parameters == tables + (2 * square + window) + (4 * square + window) + (8 * 13 + 13)
    assert (sizes.layers, sizes.seen) == ((1, 1), (3, 3))
    assert sizes.entries == (11, 13)
