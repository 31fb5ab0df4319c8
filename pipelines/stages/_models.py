"""Whether the model folders that params.yaml names fit: one to start from, and those that translate."""

import json
from pathlib import Path

from convs2s.base.files import list_files, read_json
from convs2s.config.params import Params
from convs2s.config.section import NOTHING, path_or_none


def check_models(params: Params, root: Path = Path()) -> None:
    """Check the model that training starts from, those that translate training pairs, and their text."""
    start = path_or_none(params.train.start_from)
    models = path_or_none(params.augment.models)
    if start is None and models is None:
        return
    from convs2s.package.folder import check_same, list_models, read_settings  # noqa: PLC0415  # takes 0.2 s

    if start:
        if not (root / start).is_dir():
            raise FileNotFoundError(
                f"train.start_from: expected a model folder, such as a copy of data/models/1, found {start}, "
                "which is not a folder."
            )
        check_start(root / start, params)
    text = path_or_none(params.augment.text)
    if models is None:
        return
    if text:
        expected = params.languages[::-1]
        use = "back"
    else:
        expected = params.languages
        use = "the training source"
    folders = list_models(root / models)
    if not folders:
        raise FileNotFoundError(
            f"augment.models: expected a model folder, or a folder of some, found none in {root / models}."
        )
    for folder in folders:
        languages = read_settings(folder).languages
        if languages != expected:
            raise ValueError(
                f"augment.models: expected models from {' to '.join(expected)}, to translate {use}, found "
                f"{folder}, which is from {' to '.join(languages)}. augment.text has the target sentences to "
                f"translate back; with {NOTHING}, the training source is translated."
            )
        check_same(folders[0], folder)
    if text and not list_files(root / text):
        raise FileNotFoundError(f"augment.text: expected a file of sentences, found no file {root / text}.")


def check_start(folder: Path, params: Params) -> None:
    """Check that a training with these parameters can start from a model.

    The section vocabulary cannot describe that of an imported model, and does not matter then.
    """
    from convs2s.model.description import read_description  # noqa: PLC0415
    from convs2s.package.folder import read_settings  # noqa: PLC0415

    settings = read_settings(folder)
    record = read_json(folder / "segmentation.json")
    expected = {
        "tokenize": settings.tokenize.model_dump(exclude={"corpus"}),  # text may come in both forms
        "vocabulary": {} if "origin" in record else record,
        "model": read_description(folder).architecture.model_dump(),
    }
    values = params.model_dump()
    faults = [
        f"  {section}.{key}: expected {json.dumps(value)}, found {json.dumps(values[section][key])}"
        for section, keys in expected.items()
        for key, value in keys.items()
        if key in values[section] and values[section][key] != value
    ]
    if settings.languages != params.languages:
        faults.insert(0, f"  languages: expected {list(settings.languages)}, found {list(params.languages)}")
    if faults:
        raise ValueError(
            f"train.start_from: params.yaml does not fit {folder}, from which training is to start:\n"
            + "\n".join(faults)
        )
