"""Records made for tests."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.results.commands import of_preset

COMMIT = "0123456789abcdef0123456789abcdef01234567"
COST = {"hardware": ["1 x NVIDIA H200"], "hours": {"GPU": 3.25}, "torch": ["2.13.0"]}
TEST_SET = "newstest2016: 1,999 lines, sha256 abc"
SIGNATURES = {"bleu": "nrefs:1|tok:13a", "bleu_tokenized": "nrefs:1|tok:none", "chrf": "nc:6"}


def origin(preset: str, changes: Mapping[str, Any] | None = None, **other: Any) -> dict[str, Any]:
    """Return the keys that every record has, for a preset with some changes."""
    params = of_preset(preset) | dict(changes or {})
    return {
        **{"preset": preset, "params": params, "commit": COMMIT, "date": "2026-11-20", "cost": COST},
        **{"signatures": SIGNATURES, "test_set": TEST_SET},
        **other,
    }


def scores(bleu: float) -> dict[str, float]:
    """Return the scores of a model."""
    return {"bleu": bleu, "bleu_tokenized": bleu - 0.5, "chrf": 60.0, "unknown_words": 3}


def run(preset: str, *bleu: float, ensemble: float | None = None, **other: Any) -> dict[str, Any]:
    """Return the record of a run with one seed per BLEU."""
    metrics: dict[str, Any] = {"seeds": {str(i): scores(value) for i, value in enumerate(bleu, start=1)}}
    metrics["mean"] = scores(sum(bleu) / len(bleu))
    if len(bleu) > 1:
        metrics["std"] = scores(0.75)
    if ensemble is not None:
        metrics["ensemble"] = scores(ensemble)
    perplexities = dict.fromkeys(metrics["seeds"], 6.5)
    record = {"kind": "run", **origin(preset, **other), "metrics": metrics, "perplexities": perplexities}
    record["params"]["train.seeds"] = list(map(int, perplexities))
    return record


def row(name: str, column: str = "", bleu: float = 30.0, **other: Any) -> dict[str, Any]:
    """Return a row of a sweep with one seed; values that are not given were not measured."""
    nothing = dict.fromkeys(("perplexity", "perplexity_std", "bleu_std", "target_tokens_per_second"))
    return {"row": name, "column": column, "bleu": bleu, "seeds": 1, **nothing, **other}


def sweep(table: str, preset: str, *rows: dict[str, Any], **other: Any) -> dict[str, Any]:
    """Return the record of a sweep."""
    return {"kind": "sweep", "table": table, **origin(preset, **other), "rows": rows}


def put(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Write a record."""
    (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
