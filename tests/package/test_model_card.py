"""The model card describes a model from facts alone."""

import dataclasses
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

from convs2s.package.model_card import Facts, Sizes, blocks, described, model_card, read_sizes
from tests.package.small_package import write_model


def facts(scores: dict[str, float]) -> Facts:
    sizes = Sizes(
        parameters=1234567,
        layers=(15, 5),
        blocks=("9 x 512, kernel 3; 6 x 1024, kernel 3", "5 x 512, kernel 5"),
        embedding=768,
        seen=(31, 21),
        entries=(40003, 39000),
    )
    return Facts(
        "news", ("en", "de"), "CC0", 4500000, (116000000, 110000000), sizes, "bpe", 7,
        {"train.dropout": 0.2, "train.patience": None, "train.precision": "float32"}, scores,
        {"bleu": "nrefs:1|tok:13a", "chrf": "chrF2"}, "newstest2014: 2,737 lines, sha256 00",
    )  # fmt: skip


def test_card_describes_the_model_its_scores_and_its_use() -> None:
    """Readers need languages, data, license, sizes, scores with signatures, and how to use the model."""
    card = model_card(facts({"bleu": 25.163, "chrf": 50.0, "length_ratio": 1.0}))
    assert "\n---\n\n# news\n" in card
    for part in (
        "from English (en) to German (de)",
        "license: CC0",
        "| sentence pairs | 4,500,000, after filtering |",
        "| encoder, from the bottom | 9 x 512, kernel 3; 6 x 1024, kernel 3 |",
        "| embedding | 768 channels |",
        "| parameters | 1,234,567, with weight normalization folded in |",
        "15 encoder, 5 decoder; they see 31 and 21 tokens",
        "bpe; 40,003 source and 39,000 target entries",
        "| words in them | 116,000,000 source, 110,000,000 target |",
        "| seed | 7 |",
        "| `train.dropout` | 0.2 |",
        "| `train.patience` | null |",
        '| `train.precision` | "float32" |',
        "`newstest2014: 2,737 lines, sha256 00`",
        "| chrF2 | 50.00 | `chrF2` |",
        "convs2s translate --model",
        "convs2s.load(",
    ):
        assert part in card
    assert "length_ratio" not in card


def test_a_rendered_card_has_a_row_for_a_score_and_its_signature() -> None:
    """On GitHub and Hugging Face, a bar in a signature or a name must not end a table cell."""
    assert ["BLEU, detokenized", "25.16", "nrefs:1|tok:13a"] in cells(facts({"bleu": 25.163}))
    named = dataclasses.replace(facts({}), name="news|talks", data_license="CC0 | MIT")
    assert ["training data", "news|talks; license: CC0 | MIT"] in cells(named)


def cells(of: Facts) -> list[list[str]]:
    """Return the text of all table cells, row by row, as a reader sees them."""
    rows: list[list[str]] = []
    body = without_front_matter(model_card(of))
    for before, token in pairwise(MarkdownIt("commonmark").enable("table").parse(body)):
        if token.type == "tr_open":
            rows.append([])
        elif before.type == "td_open":
            rows[-1].append("".join(child.content for child in token.children or ()))
    return rows


def without_front_matter(card: str) -> str:
    """Return the part that GitHub and Hugging Face render."""
    empty, _, body = card.split("---\n", 2)
    assert empty == ""
    return body


def test_a_language_without_a_name_is_its_code() -> None:
    """ISO 639 has more languages than our list."""
    assert described("tlh") == "tlh"
    assert described("ro") == "Romanian (ro)"


def test_card_without_scores_has_no_table() -> None:
    """An empty table would only confuse."""
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
    assert (sizes.blocks, sizes.embedding) == (("1 x 8, kernel 3", "1 x 8, kernel 3"), 8)


def test_identical_blocks_are_counted_together() -> None:
    """The paper's English-French encoder has three kinds of blocks."""
    assert blocks([512] * 6 + [768] * 4 + [2048], [3] * 6 + [3] * 4 + [1]) == (
        "6 x 512, kernel 3; 4 x 768, kernel 3; 1 x 2048, kernel 1"
    )
