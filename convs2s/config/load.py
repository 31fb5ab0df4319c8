"""Read and check params.yaml."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from convs2s.base.files import read_lines
from convs2s.config.faults import validate
from convs2s.config.params import Params

PYTHONS_OWN = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError)


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check params.yaml.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not UTF-8, or as for `parse_params`.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist. Run this from the repository root, or write the default: "
            "make preset NAME=tatoeba-en-de"
        )
    return parse_params(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Return the text of a YAML file; a ValueError if it is not UTF-8."""
    return "".join(f"{line}\n" for line in read_lines(path))


@functools.lru_cache(maxsize=64)
def parse_params(text: str, origin: str) -> Params:
    """Check the text of a params.yaml; recent results are cached.

    Raises:
        ValueError: if it is not YAML, or a key is unknown, missing, ill-typed or impossible; the message
            lists every fault with the key's dotted name.
    """
    return validate(Params, parse_yaml(text, origin), f"{origin} is invalid")


def parse_yaml(text: str, origin: str) -> Any:
    """Return the content of a YAML file; raise a ValueError if it is not YAML."""
    try:
        # YAML 1.2 by ruamel, as DVC reads it: 1e-4 is a number there, a string to PyYAML. Its parser in C is
        # faster, but shows no lines in messages.
        return YAML(typ="safe", pure=True).load(text)
    # ruamel also lets Python's own errors through, as for a date with month 13, a list as a key, or lists
    # nested too deeply.
    except (YAMLError, *PYTHONS_OWN) as error:
        text = str(error).partition("\n\nTo suppress this check")[0]  # ruamel's advice on duplicate keys
        raise ValueError(f"{origin} is not valid YAML: {text}") from error


def flatten_values(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of params.yaml by dotted name; nested values of a key stay together."""
    result: dict[str, Any] = {}
    for section, keys in sections.items():
        named = {f"{section}.{key}": value for key, value in keys.items()} if isinstance(keys, dict) else {}
        result |= named or {str(section): keys}
    return result
