"""Fifty mistakes that a newcomer may make in params.yaml: each is reported before anything runs."""

import json
from typing import Any

import pytest

from convs2s.config.load import parse_params, parse_yaml
from pipelines.check import list_doubts
from tests.presets import change_preset

REFUSED = {
    "seeds: [1, 1]": "seeds: expected each seed once, found 1 more than once",
    "seeds: []": "seeds: expected a list with at least 1 item, found []",
    "seeds: 1": "seeds: expected a list, found 1",
    "seeds: [one]": "seeds.0: expected an integer, found 'one'",
    "seeds:": "seeds: expected a list, found null",
    "languages: [en]": "languages.1: missing",
    "languages: en-de": "languages: expected a list, found 'en-de'",
    "languages: [en, de, fr]": "languages: expected at most 2 items, found ['en', 'de', 'fr']",
    "languages: [English, German]": "languages.0: expected a code of two or three lowercase letters",
    "languages: [EN, DE]": "languages.1: expected a code of two or three lowercase letters",
    "download.train.sources: []": "download.train.sources: expected a list with at least 1 item, found []",
    "download.train.pairs: all": "download.train.pairs: expected an integer, found 'all'",
    "download.valid.sources: []": "expected one, and the other null or [], found null and 0 source(s)",
    "filter.max_ratio: 0.5": "filter.max_ratio: expected greater than or equal to 1, found 0.5",
    "filter.max_overlap: 10": "filter.max_overlap: expected less than or equal to 1, found 10",
    "vocabulary.kind: BPE": "vocabulary.kind: expected 'bpe', 'sentencepiece' or 'word', found 'BPE'",
    "vocabulary.source_size: 8000": "vocabulary: expected the same source_size and target_size, as joint",
    "vocabulary.source_size: 4k": "vocabulary.source_size: expected an integer, found '4k'",
    "vocabulary.source_size: 4,000": "vocabulary.source_size: expected an integer, found '4,000'",
    "model.decoder_kernels: [3, 3]": "Change one of them: a single value of decoder_kernels, such as 3,",
    "model.decoder_widths: [192, 192]": "expected 2 decoder_kernels, one per block of decoder_widths",
    "model.encoder_kernels: 4": "expected odd encoder_kernels, which keep the length, found the even width 4",
    "model.encoder_widths: 3*192": "its short form, such as 2 x 256, 1 x 512, found '3*192'",
    "model.encoder_widths: []": "model.encoder_widths: expected a list with at least 1 item, found []",
    "model.attention: all": "model.attention: expected a list, found 'all'",
    "model.max_positions: 1": "model.max_positions: expected greater than or equal to 4, found 1",
    "train.dropout: 20%": "train.dropout: expected a number, found '20%'",
    "train.dropout: 0,1": "train.dropout: expected a number, found '0,1'",
    "train.dropout: 1.0": "train.dropout: expected less than 1, found 1.0",
    "train.droput: 0.1": "train.droput: unknown key, found 0.1; did you mean dropout?",
    "train.learning_rate: 0": "train.learning_rate: expected greater than 0, found 0",
    "train.optimizer: Adam": "train.optimizer: expected 'nesterov' or 'adam', found 'Adam'",
    "train.precision: fp16": "train.precision: expected 'auto', 'float32' or 'bfloat16', found 'fp16'",
    "train.average: 5": "train: expected average of at most max_epochs, 3, found 5",
    "train.compile: yes": "train.compile: expected true or false, found 'yes'",
    "train.nodes: 2": "run.launcher: expected one with 2 nodes (train.nodes), found null",
    "translate.beam_size: 0": "translate.beam_size: expected greater than or equal to 1, found 0",
    "translate.alpha: tune": "translate.alpha: expected a number or 'tuned', found 'tune'",
    "translate.n_best: 9": "translate: expected n_best of at most beam_size, 5, found 9",
    "tune.alphas: []": "tune.alphas: expected a list with at least 1 item, found []",
    "evaluate.ensembles: [all]": "evaluate.ensembles: expected [] with a single seed, as an ensemble",
    "evaluate.ensembles: all": "evaluate.ensembles: expected a list, found 'all'",
    "evaluate.ensembles: [1, 2]": "evaluate.ensembles: expected at most 1 item, found [1, 2]",
    "package.name:": "package.name: expected a string, found null",
}
DOUBTED = {
    "languages: [en, en]": "languages: source and target are both en",
    "languages: [en, xx]": "language xx: expected an ISO 639 code",
    "train.max_tokens: 5": "train.max_tokens: most sentences have more than 5 tokens",
    "train.max_tokens: 100000000": "train.max_tokens: no memory holds 100,000,000 tokens at once",
    "train.workers: 4000": "train.workers: 4000 processes share",
    "train.min_learning_rate: 0.1": "train.min_learning_rate: 0.1 is above train.learning_rate",
}


def typed(line: str) -> str:
    """Return the default preset with a line that somebody typed, by dotted name."""
    name, _, value = line.partition(":")
    content: Any = change_preset("tatoeba-en-de", {name: parse_yaml(value or "null", line)})
    return json.dumps(content)  # JSON is YAML that parses faster


@pytest.mark.parametrize(("line", "message"), REFUSED.items(), ids=REFUSED)
def test_it_is_refused_in_our_words(line: str, message: str) -> None:
    """The message alone must do: pydantic's words name types of Python, which are not in the file."""
    with pytest.raises(ValueError, match=r"^params\.yaml is invalid:\n") as error:
        parse_params(typed(line), "params.yaml")
    text = str(error.value)
    assert message in text
    assert not any(word in text for word in ("tuple", "after validation", "None", "constrained", "literal"))


@pytest.mark.parametrize(("line", "message"), DOUBTED.items(), ids=DOUBTED)
def test_it_is_doubted(line: str, message: str) -> None:
    """Somebody may mean it, so it runs, with a warning first."""
    assert [doubt.startswith(message) for doubt in list_doubts(parse_params(typed(line), "params.yaml"))] == [
        True
    ]


def test_there_are_fifty() -> None:
    """A user tried fifty; 16 of them were not reported, or too late."""
    assert len(REFUSED) + len(DOUBTED) == 50
