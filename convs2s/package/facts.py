"""What is known about a trained model: the content of its card, and of facts.json for programs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from convs2s.base.files import read_json
from convs2s.config.faults import list_faults
from convs2s.text.languages import language_name

FACTS = "facts.json"


@dataclass(frozen=True)
class Facts:
    """What is known about a model.

    Attributes:
        name: title.
        languages: codes of source and target.
        domain: kind of text in the training data; None if nobody said.
        pairs: number of training pairs, after filtering.
        words: in them, source and target.
        mistakes: rows of the card on the corpus, from `describe_mistakes`.
        model: rows on the model, from `describe_model`.
        training: hyperparameters, by key of params.yaml.
        scores: on the test set, by name; may be empty.
        signatures: sacreBLEU signature of each score.
        test_set: its lines and hash; empty without scores.
        examples: sentences of the test set, each with its reference.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    name: str
    languages: tuple[str, str]
    data_license: str
    domain: str | None
    pairs: int
    words: tuple[int, int]
    mistakes: Mapping[str, str]
    model: Mapping[str, str]
    seed: int
    training: Mapping[str, object]
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    test_set: str
    examples: Sequence[tuple[str, str]]

    def summary(self) -> str:
        """Return on one line what the model was trained on, and how well it translates."""
        source, target = map(language_name, self.languages)
        text = f" of {self.domain}" if self.domain else ""
        bleu = f"; {self.scores['bleu']:.1f} BLEU on its test set" if "bleu" in self.scores else ""
        pairs = f"{self.pairs:,} sentence pairs{text} (license: {self.data_license})"
        return f"{source} to {target}, trained on {pairs}{bleu}"


def read_facts(folder: Path) -> Facts | None:
    """Return the facts in a model folder; None if it has none, such as one imported from fairseq."""
    path = folder / FACTS
    if not path.is_file():
        return None
    content = read_json(path)
    try:
        return TypeAdapter(Facts).validate_json(json.dumps(content))  # as JSON, lists can be tuples
    except ValidationError as error:
        raise ValueError(
            f"{path} does not describe a model:\n{list_faults(error)}\nPackage or fetch the folder again."
        ) from None
