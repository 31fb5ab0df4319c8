"""Read and check params.yaml."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from convs2s.config.faults import describe
from convs2s.config.layers import expanded
from convs2s.config.params import Params
from convs2s.messages import conversion

LONGEST = 1 << 20  # bytes of a params.yaml
MOST_VALUES = 20_000  # with all aliases expanded
DEEPEST = 20


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check params.yaml.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not UTF-8 or too long, or as for `parse_params`.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist. Run this from the repository root, or write the default: "
            "make preset NAME=tatoeba-en-de"
        )
    return parse_params(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Return the text of a YAML file.

    Raises:
        ValueError: if it is not UTF-8, or too long.
    """
    if path.stat().st_size > LONGEST:
        raise ValueError(
            f"{path} has {path.stat().st_size:,} bytes, wanted at most {LONGEST:,}. Is it the wrong file? "
            "Write the default: make preset NAME=tatoeba-en-de"
        )
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: byte {error.start} is {content[error.start]:#04x}, which is not UTF-8. Save it "
            f"as UTF-8, for example: {conversion(content)}."
        ) from error


@functools.lru_cache(maxsize=64)
def parse_params(text: str, origin: str) -> Params:
    """Check the text of a params.yaml; recent results are cached.

    Args:
        origin: where the text came from, for messages.

    Raises:
        ValueError: if it is not YAML, or a key is unknown, missing, ill-typed or impossible; the message
            lists every fault with the key's dotted name, what was found and what was wanted.
    """
    content = parse_yaml(text, origin)
    try:
        content = expanded(content)
    except ValueError as error:
        raise ValueError(f"{origin} has 1 fault(s):\n  {error}") from None
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        faults = "\n".join(f"  {describe(fault)}" for fault in error.errors())
        raise ValueError(f"{origin} has {error.error_count()} fault(s):\n{faults}") from None


def parse_yaml(text: str, origin: str) -> Any:
    """Return the content of a YAML file.

    Raises:
        ValueError: if it is not YAML, or aliases make it much larger than its text.
    """
    try:
        # YAML 1.2 by ruamel, as DVC reads it: 1e-4 is a number there, a string to PyYAML.
        content = YAML(typ="safe", pure=True).load(text)
    # ruamel also lets Python's own errors through, as for a date with month 13 or a list as a key.
    except (YAMLError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise ValueError(f"{origin} is not valid YAML: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{origin} is not a parameter file: its lists are nested too deeply.") from error
    if count_values(content, 0) > MOST_VALUES:
        raise ValueError(
            f"{origin} has more than {MOST_VALUES:,} values, or more than {DEEPEST} levels of them, once its "
            "aliases (*name) are written out. Wanted fewer: write the values themselves."
        )
    return content


def count_values(content: object, level: int) -> int:
    """Return the number of values in a tree of lists and mappings, counting no further than MOST_VALUES + 1.

    A tree deeper than DEEPEST, such as one that contains itself, also counts as too large.
    """
    if level > DEEPEST:
        return MOST_VALUES + 1
    children: Any = content.values() if isinstance(content, Mapping) else content
    if isinstance(content, str | bytes) or not isinstance(content, Mapping | list | set | tuple):
        return 1
    total = 1
    for child in children:
        total += count_values(child, level + 1)
        if total > MOST_VALUES:
            break
    return total


def dotted(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of params.yaml by dotted name; nested values of a key stay together."""
    result: dict[str, Any] = {}
    for section, keys in sections.items():
        named = {f"{section}.{key}": value for key, value in keys.items()} if isinstance(keys, dict) else {}
        result |= named or {str(section): keys}
    return result
