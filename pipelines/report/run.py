"""A finished run of the pipeline, read from its folder: scores, trainings, corpus, translations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter

from convs2s.config.older import with_added_keys
from convs2s.config.tokenize import TokenizeParams
from convs2s.decode.attention import Attention, read_attention
from convs2s.score.identity import SetIdentity
from convs2s.text.corpus.files import read_lines
from convs2s.text.words.tokenization import Tokenizer
from pipelines.results.commands import recorded
from pipelines.results.reading import checked, existing, read
from pipelines.results.records import SeedMetrics

SNAPSHOT = Path("data/snapshot/params.yaml")  # the values that a run has used
REMEDY = "the run has not finished, or its outputs are missing. Run `make repro` (or `dvc repro`) there."
Cost = dict[str, Any] | None


@dataclass(frozen=True)
class Training:
    """The training of a seed."""

    seed: str
    curves: Path
    metrics: dict[str, Any]
    cost: Cost  # as `results.costs` returns it; None if unknown


@dataclass(frozen=True)
class Corpus:
    """The training data: what the filter read, kept and removed."""

    counts: dict[str, Any]
    rules: list[dict[str, Any]]  # rule, limit, removed, share
    lengths: pd.DataFrame
    removed: dict[str, list[dict[str, Any]]]  # a sample by rule; empty in older runs


@dataclass(frozen=True)
class Translations:
    """The test set and a run's final translation of it, an item per sentence."""

    member: str  # a seed, or `ensemble`
    sources: list[str]
    references: list[str]
    hypotheses: list[str]
    attention: list[Attention]  # of the first seed


@dataclass(frozen=True)
class Run:
    """A finished run."""

    name: str
    params: dict[str, Any]  # by dotted name, without those of machines
    metrics: SeedMetrics
    scores: pd.DataFrame  # text, member and the scores, as stage evaluate writes them
    signatures: dict[str, str]
    test_set: str
    by_length: pd.DataFrame
    trainings: list[Training]
    corpus: Corpus
    translations: Translations
    note: str  # a warning for the reader, or empty

    @property
    def title(self) -> str:
        """Data set and languages."""
        return str(self.params["package.name"])


def read_run(name: str, folder: Path, cost_of: Callable[[str], Cost], note: str = "") -> Run:
    """Read a run.

    Args:
        name: to show to the reader.
        folder: with data/.
        cost_of: returns the cost of a seed's training.
        note: a warning for the reader.

    Raises:
        FileNotFoundError: if the run has not finished.
        ValueError: if a file is damaged.
    """
    params = read(folder / SNAPSHOT, REMEDY)
    evaluation, seeds = folder / "data" / "evaluation", [str(seed) for seed in params["train"]["seeds"]]
    metrics = read_metrics(folder / "data")
    member = "ensemble" if metrics.ensemble else seeds[0]
    return Run(
        name=name,
        params=recorded(params),
        metrics=metrics,
        scores=pd.read_csv(existing(evaluation / "scores.csv", REMEDY), dtype={"member": str}),
        signatures=read(evaluation / "signatures.json", REMEDY),
        test_set=str(SetIdentity.read(existing(evaluation / "test_set.json", REMEDY))),
        by_length=pd.read_csv(existing(evaluation / "by_length.csv", REMEDY)),
        trainings=[read_training(folder / "data" / "trained" / seed, cost_of) for seed in seeds],
        corpus=read_corpus(folder / "data" / "filtered"),
        translations=read_translations(folder / "data", params, member, seeds[0]),
        note=note,
    )


def read_metrics(data: Path) -> SeedMetrics:
    """Read the scores of seeds and, if there is one, of the ensemble."""
    path = data / "evaluation" / "metrics.json"
    found: SeedMetrics = checked(SeedMetrics, read(path, REMEDY), path)
    return found


def read_training(folder: Path, cost_of: Callable[[str], Cost]) -> Training:
    """Read the results of a seed's training."""
    seed = folder.name
    return Training(seed, folder / "curves", read(folder / "metrics.json", REMEDY), cost_of(seed))


def read_corpus(folder: Path) -> Corpus:
    """Read the filter's reports; older runs have no sample of removed pairs."""
    sample, removed = folder / "removed.json", dict[str, list[dict[str, Any]]]()
    for row in read(sample) if sample.is_file() else []:
        removed.setdefault(row["rule"], []).append(row)
    rules = pd.read_csv(existing(folder / "rules.csv", REMEDY))
    return Corpus(
        counts=read(folder / "report.json", REMEDY),
        rules=[{str(key): value for key, value in row.items()} for row in rules.to_dict("records")],
        lengths=pd.read_csv(existing(folder / "lengths.csv", REMEDY)),
        removed=removed,
    )


def read_translations(data: Path, params: dict[str, Any], member: str, seed: str) -> Translations:
    """Read the test set, its references as scored, a member's final text, and a seed's attention."""
    text = "replaced" if params["replace"]["enabled"] else "plain"
    section = TypeAdapter(TokenizeParams).validate_python(with_added_keys("tokenize", params["tokenize"]))
    tokenizer, test = Tokenizer(params["download"]["target_language"], section), data / "raw" / "test"
    sources, references, hypotheses = (
        list(read_lines(existing(path, REMEDY)))
        for path in (test / "source.txt", test / "target.txt", data / "replaced" / member / f"{text}.txt")
    )
    if not len(sources) == len(references) == len(hypotheses):
        raise ValueError(
            f"{test} has {len(sources):,} source and {len(references):,} target lines, its translation by "
            f"{member} {len(hypotheses):,}; wanted equal numbers. Run dvc repro to bring them up to date."
        )
    attention = read_attention(existing(data / "translations" / seed / "attention.npz", REMEDY))
    scored = [tokenizer.reference(line) for line in references]
    return Translations(member, sources, scored, hypotheses, attention)


def grouped(runs: Sequence[Run], key: Callable[[Run], str]) -> list[list[Run]]:
    """Return runs grouped by key, in the order in which keys first occur."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return list(groups.values())
