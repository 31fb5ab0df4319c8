"""Finished runs made for tests, with the library's own writers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from convs2s.base.files import write_folder, write_json, write_lines
from convs2s.config.load import parse_yaml
from convs2s.score.evaluation import ReferenceSet, ScoredText, evaluate
from convs2s.score.identity import SetIdentity
from convs2s.score.pictures import draw_layers
from pipelines.preset import apply_overrides
from pipelines.stages import filter as filter_stage
from tests.presets import rendered

TEST = [
    ("the girl sleeps .", "das Mädchen schläft ."),
    ("<b>bold</b> & \x07more", "<b>fett</b> & mehr"),
    ("a very long sentence with many words .", "ein sehr langer Satz mit vielen Wörtern ."),
]
"""Sources and references."""
GOOD = ["das Mädchen schläft .", "<b>fett</b> & weniger", "ein sehr langer Satz mit Wörtern ."]
TRAIN = [("a b", "c d"), ("", "x"), ("e f", "g h"), ("<i>one</i>", "one two\U000f0020 three"), ("i", "j")]


def make_run(folder: Path, changes: Mapping[str, Any], hypotheses: Mapping[str, Sequence[str]]) -> Path:
    """Write the files of a run that the report reads.

    Args:
        changes: overrides of the default parameters.
        hypotheses: translations of the test set, by member: a seed or `ensemble`.
    """
    seeds = [int(member) for member in hypotheses if member != "ensemble"]
    own = {"seeds": seeds, "evaluate.ensembles": ["all"] * ("ensemble" in hypotheses)}
    text, params = apply_overrides(rendered("tatoeba-en-de"), {**own, **changes})
    data = folder / "data"
    write_lines(folder / "params.yaml", text.rstrip("\n").split("\n"))
    write_lock(folder, text)
    write_test_set(data, hypotheses)
    for seed in seeds:
        write_training(data, seed)
    write_folder(data / "tokenized" / "train", TRAIN)
    for name in ("augmented", "valid"):
        write_folder(data / "tokenized" / name, [])
    for split, pairs in {"train": TRAIN, "valid": [], "development": []}.items():
        write_folder(data / "raw" / split, pairs)
    limits = params.filter.model_copy(update={"valid_every": 2})
    names = ("raw", "tokenized/train", "tokenized/augmented", "tokenized/valid", "filtered")
    filter_stage.run(limits, params.augment, ("en", "xf"), *(data / name for name in names))
    return folder


def write_lock(folder: Path, text: str) -> None:
    """Write dvc.lock, with all values of a params.yaml that a stage can depend on."""
    values = {name: value for name, value in parse_yaml(text, "params.yaml").items() if name != "run"}
    write_json(folder / "dvc.lock", {"stages": {"evaluate": {"params": {"params.yaml": values}}}})


def write_test_set(data: Path, hypotheses: Mapping[str, Sequence[str]]) -> None:
    """Write the test set, translations, their scores and a picture of attention."""
    write_folder(data / "raw" / "test", TEST)
    sources, references = (list(side) for side in zip(*TEST, strict=True))
    for member, lines in hypotheses.items():
        write_lines(data / "replaced" / member / "plain.txt", list(lines))
    picture = data / "evaluation" / "pictures" / "attention-1.png"
    draw_layers([("sentence", np.full((2, 2), 0.5))], ["a", "b"], ["c", "d"], picture)
    lengths = [len(source.split()) for source in sources]
    reference_set = ReferenceSet(sources, references, lengths, references, [(one,) for one in references])
    texts = [ScoredText(member, "plain", list(lines), list(lines)) for member, lines in hypotheses.items()]
    evaluate(texts, reference_set, None, data / "evaluation")
    write_json(data / "evaluation" / "test_set.json", asdict(SetIdentity("made", len(TEST), "0" * 64)))


def write_training(data: Path, seed: int) -> None:
    """Write a training's curves, metrics and cost."""
    trained = data / "trained" / str(seed)
    for name in ("train/loss", "train/learning_rate", "train/gradient_norm", "valid/perplexity"):
        lines = [f"step\t{name.partition('/')[2]}", f"50\t{7 - seed}", f"100\t{6 - seed}"]
        write_lines(trained / "curves" / f"{name}.tsv", lines)
    metrics = {"validation_perplexity": 4.5 + seed, "updates": 1200, "parameters": 2250876}
    write_json(trained / "metrics.json", metrics)
    cost = {"hardware": "2 x Toy CPU", "CPU core-hours": 1.0, "target tokens/s": 2000}
    write_json(data / "costs" / f"{seed}.json", cost)
