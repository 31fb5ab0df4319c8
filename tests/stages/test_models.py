"""The model that a training starts from fits params.yaml, or the message has every difference."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.params import Params
from convs2s.model.description import seal
from pipelines.stages._models import check_start
from tests.package.small_package import write_start
from tests.presets import change_preset, params_of

PRESET = "tatoeba-en-de"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"languages": ["en", "fr"]}, "languages: expected ['en', 'de'], found ['en', 'fr']"),
        ({"tokenize.lowercase": True}, "tokenize.lowercase: expected false, found true"),
        ({"vocabulary.kind": "sentencepiece"}, 'vocabulary.kind: expected "bpe", found "sentencepiece"'),
        ({"vocabulary.source_size": 9, "vocabulary.target_size": 9}, "target_size: expected 4000, found 9"),
        ({"model.embedding_size": 64}, "model.embedding_size: expected 128, found 64"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """Ids or weights would mean something else. How the corpus comes is free: text may come tokenized."""
    start = write_start(tmp_path, params_of(PRESET))
    check_start(start, Params.model_validate(change_preset(PRESET, {"tokenize.corpus": "tokenized"})))
    with pytest.raises(ValueError, match=r"params\.yaml does not fit .*package, from which") as error:
        check_start(start, Params.model_validate(change_preset(PRESET, changes)))
    assert message in str(error.value)


def test_the_vocabulary_of_an_imported_model_is_taken_as_it_is(tmp_path: Path) -> None:
    """params.yaml has no words for codes of subword-nmt, for example."""
    start = write_start(tmp_path, params_of(PRESET))
    (start / "segmentation.json").write_text(json.dumps({"kind": "subword-nmt", "origin": "fairseq"}))
    (start / "bpe.codes").write_text("a b\n")
    seal(start)
    check_start(start, params_of(PRESET))
