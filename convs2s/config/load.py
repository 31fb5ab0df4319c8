"""Read and check params.yaml."""

from pathlib import Path

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from convs2s.config.faults import describe
from convs2s.config.params import Params


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check params.yaml.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: as `parse_params`.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist. Run this from the repository root, or write the default: "
            "make preset NAME=generated"
        )
    return parse_params(path.read_text(encoding="utf-8"), str(path))


def parse_params(text: str, origin: str) -> Params:
    """Check the text of a params.yaml.

    Args:
        origin: where the text is from, for messages.

    Raises:
        ValueError: if it is not YAML, or a key is unknown, missing, ill-typed or impossible; the message
            lists every fault with the key's dotted name, what was found and what was wanted.
    """
    try:
        # YAML 1.2 by ruamel, as DVC reads it: 1e-4 is a number there, a string to PyYAML.
        content = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ValueError(f"{origin} is not valid YAML: {error}") from error
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        faults = "\n".join(f"  {describe(fault)}" for fault in error.errors())
        raise ValueError(f"{origin} has {error.error_count()} fault(s):\n{faults}") from None
