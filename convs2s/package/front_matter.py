"""The YAML at the top of a model card, from which the Hugging Face Hub lists and finds models."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML

# The Hub's identifiers of licenses; any other license is `other` there, with a name.
LICENSES = {
    "mit", "apache-2.0", "cc0-1.0", "cc-by-2.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0",
    "cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0", "cc-by-nc-sa-3.0",
    "cc-by-nc-sa-4.0",
}  # fmt: skip
# The Hub's name of each of our scores.
METRICS = {"bleu": "bleu", "bleu_tokenized": "bleu", "chrf": "chrf"} | {f"rouge{n}": "rouge" for n in "12L"}


def front_matter(
    name: str,
    languages: tuple[str, str],
    data_license: str,
    scores: Mapping[str, tuple[str, float]],
    test_set: str,
) -> str:
    """Return the block between lines of three hyphens.

    Args:
        name: of the model.
        languages: of source and target, as codes.
        data_license: of the training data, which also applies to the model.
        scores: title and value of each score on the test set; may be empty.
        test_set: what the scores were measured on.
    """
    task = "translation" if languages[0] != languages[1] else "summarization"
    content: dict[str, Any] = {
        "language": list(dict.fromkeys(languages)),
        **license_of(data_license),
        "library_name": "convs2s",
        "pipeline_tag": task,
        "tags": ["convs2s", "fconv", "arxiv:1705.03122"],
    }
    if scores:
        content["metrics"] = list(dict.fromkeys(METRICS[score] for score in scores))
        content["model-index"] = [{"name": name, "results": [result(task, name, scores, test_set)]}]
    text = io.StringIO()
    yaml = YAML()
    yaml.width = 2**16  # never wrap a value
    yaml.dump(content, text)
    return f"---\n{text.getvalue()}---\n"


def license_of(data_license: str) -> dict[str, str]:
    """Return the license by the Hub's identifier, or as `other` with a name."""
    words = slug(data_license)
    return {"license": words} if words in LICENSES else {"license": "other", "license_name": words}


def result(task: str, name: str, scores: Mapping[str, tuple[str, float]], test_set: str) -> dict[str, Any]:
    """Return an entry of model-index: the scores on one test set."""
    metrics: Sequence[dict[str, Any]] = [
        {"type": METRICS[score], "name": title, "value": round(value, 2)}
        for score, (title, value) in scores.items()
    ]
    dataset = {"type": slug(name), "name": test_set or name}
    return {"task": {"type": task}, "dataset": dataset, "metrics": metrics}


def slug(text: str) -> str:
    """Return text as an identifier: lower-case letters, digits, dots and hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unknown"
