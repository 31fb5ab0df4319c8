"""The whole pipeline at toy size, stage by stage in one process: raw text to scores to a model for users."""

import json
from pathlib import Path

import pytest

import convs2s
from convs2s.config.params import Params
from convs2s.config.selection import SelectionParams
from convs2s.text.sources.part import SPLITS
from pipelines.results.report import report
from pipelines.stages import (
    align,
    candidates,
    download,
    encode,
    evaluate,
    filter,
    package,
    replace,
    tokenize,
    train,
    translate,
    truecase,
    tune,
    vocabulary,
)
from tests.train.tiny import tiny_params

SEEDS = [1, 2]
TEST_PAIRS = 30


def toy_params(folder: Path, kind: str) -> Params:
    """Return the tiny model's parameters for 400 generated pairs; words are with vocabulary selection."""
    params = tiny_params(folder, seeds=SEEDS, max_epochs=1, max_tokens=500, batch_sentences=32)
    generated = params.download.train[0]
    selection = SelectionParams(common=50, candidates=5) if kind == "word" else None
    size = 300 if kind == "word" else 400
    return params.model_copy(
        update={
            "download": params.download.model_copy(
                update={
                    "train": [generated.model_copy(update={"pairs": 400, "noise": 0.1})],
                    "test": [generated.model_copy(update={"pairs": TEST_PAIRS, "noise": 0.0})],
                }
            ),
            "filter": params.filter.model_copy(update={"valid_every": 10}),
            "vocabulary": params.vocabulary.model_copy(
                update={"kind": kind, "joint": kind == "bpe", "source_size": size, "target_size": size}
            ),
            "train": params.train.model_copy(update={"selection": selection}),
            "translate": params.translate.model_copy(
                update={"alpha": "tuned" if kind == "bpe" else 1.0, "selection": selection}
            ),
            "replace": params.replace.model_copy(update={"enabled": kind == "word"}),
            "model": params.model.model_copy(update={"max_positions": 256}),
        }
    )


def run_all(params: Params, data: Path) -> None:
    """Run every stage as dvc.yaml orders them."""
    seeds = params.train.seeds
    languages = (params.download.source_language, params.download.target_language)
    for split in SPLITS:
        download.run(params.download, split, data / "downloads", data / "raw" / split)
    truecasers = data / "truecasers"
    truecase.run(params.tokenize, languages, data / "raw" / "train", truecasers)
    for split in ("train", "valid", "development"):
        tokenize.run(params.tokenize, languages, truecasers, data / "raw" / split, data / "tokenized" / split)
    filter.run(params.filter, data / "tokenized" / "train", data / "tokenized" / "valid", data / "filtered")
    filtered = data / "filtered" / "train"
    vocabulary.run(params.vocabulary, filtered, data / "vocabulary")
    for split in ("train", "valid"):
        encode.run(data / "vocabulary", data / "filtered" / split, data / "encoded" / split)
    align.run(params.align, filtered / "source.txt", filtered / "target.txt", data / "alignment")
    candidates.run(params.align, data / "encoded" / "train", data / "candidates")
    both = data / "vocabulary", data / "candidates"
    rest = (params.translate, params.tokenize, languages)
    test = data / "raw" / "test"
    for seed in seeds:
        trained = data / "trained" / str(seed)
        work = data / "work" / str(seed)
        train.run(params.model, params.train, seed, data / "encoded", *both, work, trained)
    for member in (*map(str, seeds), "ensemble"):
        sets, out = (data / "filtered" / "valid", data / "tokenized" / "development"), data / "tuned" / member
        tune.run(params.tune, params.translate, seeds, member, data / "trained", *both, *sets, out)
    for member in (*map(str, seeds), "ensemble"):
        tuned, out = data / "tuned" / member / "alpha.json", data / "translations" / member
        translate.run(*rest, seeds, member, data / "trained", *both, truecasers, test, tuned, out)
    for member in (*map(str, seeds), "ensemble"):
        folders = (data / "translations" / member, data / "alignment", data / "replaced" / member)
        replace.run(params.replace, params.tokenize, languages, *folders)
    evaluate.run(
        params.evaluate,
        params.tokenize,
        languages,
        seeds,
        params.replace.enabled,
        *(data / name for name in ("replaced", "translations", "raw/test", "evaluation")),
    )
    for seed in seeds:
        package.run(
            params.package,
            params.tokenize,
            params.translate,
            params.replace,
            languages,
            data / "trained" / str(seed) / "model",
            data / "vocabulary",
            truecasers,
            data / "alignment",
            data / "candidates",
            data / "tuned" / str(seed) / "alpha.json",
            data / "evaluation",
            seed,
            data / "models" / str(seed),
        )


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_raw_text_becomes_scores_and_a_model(tmp_path: Path, kind: str) -> None:
    """Every file that the README promises is there and fits the others."""
    params = toy_params(tmp_path, kind)
    data = tmp_path / "data"
    run_all(params, data)
    removed = json.loads((data / "filtered" / "report.json").read_text())["removed"]
    assert removed["empty_side"] > 0
    assert removed["too_long"] > 0
    assert removed["ratio"] > 0
    metrics = json.loads((data / "evaluation" / "metrics.json").read_text())
    assert set(metrics["seeds"]) == {"1", "2"}
    assert {"mean", "std", "ensemble"} <= set(metrics)
    texts = ["plain.txt", "replaced.txt"] if kind == "word" else ["plain.txt"]
    for member in ("1", "2", "ensemble"):
        for text in texts:
            content = (data / "replaced" / member / text).read_text(encoding="utf-8")
            assert content.count("\n") == TEST_PAIRS
            assert text == "plain.txt" or "<unk>" not in content
    assert "BLEU" in report(data)
    sources = (data / "raw" / "test" / "source.txt").read_text(encoding="utf-8").split("\n")[:-1]
    final = (data / "replaced" / "1" / texts[-1]).read_text(encoding="utf-8").split("\n")[:-1]
    # What a user gets from the model folder is what the stages translated and scored. All of it at once: with
    # vocabulary selection a translation depends on its batch.
    assert convs2s.load(data / "models" / "1").translate(sources) == final
