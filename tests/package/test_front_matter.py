"""The front matter is YAML with the keys and identifiers of the Hugging Face Hub."""

import pytest
from ruamel.yaml import YAML

from convs2s.package.front_matter import front_matter, license_of


def test_front_matter_has_all_that_the_hub_lists() -> None:
    """Names with a colon, which would begin a YAML mapping, must come back whole."""
    scores = {"bleu": ("BLEU, detokenized", 25.163), "chrf": ("chrF2", 50.0)}
    text = front_matter("News: en-de", ("en", "de"), "CC BY-NC-SA 4.0", scores, "news: 2,737 lines")
    first, content, last = text.split("---\n")
    assert first == last == ""
    assert YAML(typ="safe").load(content) == {
        "language": ["en", "de"],
        "license": "cc-by-nc-sa-4.0",
        "library_name": "convs2s",
        "pipeline_tag": "translation",
        "tags": ["convs2s", "fconv", "arxiv:1705.03122"],
        "metrics": ["bleu", "chrf"],
        "model-index": [
            {
                "name": "News: en-de",
                "results": [
                    {
                        "task": {"type": "translation"},
                        "dataset": {"type": "news-en-de", "name": "news: 2,737 lines"},
                        "metrics": [
                            {"type": "bleu", "name": "BLEU, detokenized", "value": 25.16},
                            {"type": "chrf", "name": "chrF2", "value": 50.0},
                        ],
                    }
                ],
            }
        ],
    }


def test_a_model_of_one_language_without_scores_is_listed_as_a_summarizer() -> None:
    """Summarization is the paper's second task; a card without scores has no table."""
    content = YAML(typ="safe").load(front_matter("headlines", ("en", "en"), "MIT", {}, "").strip("-\n"))
    assert (content["language"], content["pipeline_tag"]) == (["en"], "summarization")
    assert "model-index" not in content
    assert "metrics" not in content


@pytest.mark.parametrize(
    ("data_license", "wanted"),
    [
        ("MIT", {"license": "mit"}),
        ("see statmt.org/wmt14; research use", "see-statmt.org-wmt14-research-use"),
        ("?", "unknown"),
    ],
)
def test_a_license_that_the_hub_does_not_know_is_other(data_license: str, wanted: object) -> None:
    """The Hub accepts an unknown license only as `other` with a name."""
    if isinstance(wanted, str):
        wanted = {"license": "other", "license_name": wanted}
    assert license_of(data_license) == wanted
