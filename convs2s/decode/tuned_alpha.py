"""alpha.json: the alpha chosen by the stage tune, for translate.alpha: tuned (§4.3)."""

import json
from collections.abc import Mapping
from pathlib import Path

from convs2s.config.translate import TranslateParams, TranslateSection
from convs2s.text.corpus.files import read_lines, write_json


def write_alpha(path: Path, facts: Mapping[str, float]) -> None:
    """Write the chosen alpha and its score; `facts` is empty if none was chosen."""
    write_json(path, dict(facts))


def with_alpha(params: TranslateSection, alpha: float) -> TranslateParams:
    """Return the same search with this alpha."""
    return TranslateParams.model_validate({**params.model_dump(), "alpha": alpha})


def settle(params: TranslateSection, path: Path) -> TranslateParams:
    """Return the search with a number for alpha, from params.yaml or from the file of `write_alpha`.

    Raises:
        FileNotFoundError: if alpha is `tuned` and there is no such file.
        ValueError: if alpha is `tuned` and the file has none.
    """
    if params.alpha != "tuned":
        return with_alpha(params, params.alpha)
    text = "\n".join(read_lines(path))
    try:
        return with_alpha(params, json.loads(text)["alpha"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"translate.alpha is tuned, but {path} contains {text!r}; wanted the alpha chosen by the stage "
            "tune. Run: dvc repro"
        ) from None
