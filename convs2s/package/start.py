"""Whether a training can start from a model folder."""

import json
from pathlib import Path

from convs2s.config.params import Params
from convs2s.model.description import read_description
from convs2s.package.folder import read_settings
from convs2s.text.corpus.files import read_json


def check_start(folder: Path, params: Params) -> None:
    """Check that a training with these parameters can start from a model.

    The section vocabulary cannot describe that of an imported model, and does not matter then.

    Raises:
        FileNotFoundError: if the folder or one of its files is missing.
        ValueError: if it is damaged, or has other languages, tokenization, vocabulary or architecture.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"train.start_from: expected a model folder, such as a copy of data/models/1, found {folder}, "
            "which is not a folder."
        )
    settings, record = read_settings(folder), read_json(folder / "segmentation.json")
    expected = {
        "download": dict(zip(("source_language", "target_language"), settings.languages, strict=True)),
        "tokenize": settings.tokenize.model_dump(
            exclude={"corpus"}
        ),  # text may come tokenized for one of them
        "vocabulary": {} if "origin" in record else record,
        "model": read_description(folder).architecture.model_dump(),
    }
    given = params.model_dump()
    faults = [
        f"  {section}.{key}: expected {json.dumps(value)}, found {json.dumps(given[section][key])}"
        for section, values in expected.items()
        for key, value in values.items()
        if key in given[section] and given[section][key] != value
    ]
    if faults:
        raise ValueError(
            f"train.start_from: params.yaml does not fit {folder}, from which training is to start:\n"
            + "\n".join(faults)
        )
