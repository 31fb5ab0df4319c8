"""Whether the model folders that params.yaml names fit: one to start from, and those that translate."""

import json
from pathlib import Path

from convs2s.base.files import read_json
from convs2s.config.params import Params
from convs2s.model.description import read_description
from convs2s.package.folder import check_same, read_settings


def check_models(params: Params, root: Path = Path()) -> None:
    """Check the model that training starts from, those that translate training pairs, and their text.

    Raises:
        FileNotFoundError: if a folder or file is missing.
        ValueError: if a model is damaged, has the wrong languages, or does not fit.
    """
    if params.train.start_from is not None:
        check_start(root / params.train.start_from, params)
    folders = [root / name for name in params.augment.models]
    languages = params.download.source_language, params.download.target_language
    expected, use = (languages[::-1], "back") if params.augment.text else (languages, "the training source")
    for folder in folders:
        check_folder("augment.models", folder)
        if (found := read_settings(folder).languages) != expected:
            raise ValueError(
                f"augment.models: expected models from {' to '.join(expected)}, to translate {use}, found "
                f"{folder}, which is from {' to '.join(found)}. augment.text has the target sentences to "
                "translate back; with [], the training source is translated."
            )
        check_same(folders[0], folder)
    for path in (root / name for name in params.augment.text):
        if not path.is_file():
            raise FileNotFoundError(f"augment.text: expected a file of sentences, found no file {path}.")


def check_folder(key: str, folder: Path) -> None:
    """Raise FileNotFoundError unless the value of a key of params.yaml is a folder."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{key}: expected a model folder, such as a copy of data/models/1, found {folder}, which is not "
            "a folder."
        )


def check_start(folder: Path, params: Params) -> None:
    """Check that a training with these parameters can start from a model.

    The section vocabulary cannot describe that of an imported model, and does not matter then.

    Raises:
        FileNotFoundError: if the folder or one of its files is missing.
        ValueError: if it is damaged, or has other languages, tokenization, vocabulary or architecture.
    """
    check_folder("train.start_from", folder)
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
