"""Records made for tests."""

import csv
import json
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
COST = {"hardware": ["1 x NVIDIA H200"], "hours": {"GPU": 3.25}, "torch": ["2.13.0"]}
TEST_SET = "newstest2016: 1,999 lines, sha256 abc"
SIGNATURES = {"bleu": "nrefs:1|tok:13a", "bleu_tokenized": "nrefs:1|tok:none", "chrf": "nc:6"}


def origin(preset: str, **other: Any) -> dict[str, Any]:
    """Return what every record has."""
    return {
        **{"preset": preset, "changes": {}, "commit": COMMIT, "date": "2026-11-20", "cost": COST},
        **{"signatures": SIGNATURES, "test_set": TEST_SET},
        **other,
    }


def scores(bleu: float) -> dict[str, float]:
    """Return scores of a model."""
    return {"bleu": bleu, "bleu_tokenized": bleu - 0.5, "chrf": 60.0, "unknown_words": 3}


def run(preset: str, *bleu: float, ensemble: float | None = None, **other: Any) -> dict[str, Any]:
    """Return the record of a run with a seed for each BLEU."""
    metrics: dict[str, Any] = {"seeds": {str(i): scores(value) for i, value in enumerate(bleu, start=1)}}
    metrics["mean"] = scores(sum(bleu) / len(bleu))
    if len(bleu) > 1:
        metrics["std"] = scores(0.75)
    if ensemble is not None:
        metrics["ensemble"] = scores(ensemble)
    perplexities = dict.fromkeys(metrics["seeds"], 6.5)
    return {"kind": "run", **origin(preset, **other), "metrics": metrics, "perplexities": perplexities}


def table(key: str, preset: str, **other: Any) -> dict[str, Any]:
    """Return the record of a table."""
    return {"kind": "table", "table": key, "picture": None, **origin(preset, **other)}


SWEEP = (
    "row,column,paper_perplexity,paper_bleu,perplexity,perplexity_std,bleu,bleu_std,seeds,"
    "target_tokens_per_second"
)


def put(folder: Path, name: str, record: dict[str, Any], *rows: str) -> None:
    """Write a record, with rows given as the lines of a CSV; what a line lacks at its end is empty."""
    content = record | ({"rows": list(csv.DictReader(rows, restval=""))} if rows else {})
    (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
