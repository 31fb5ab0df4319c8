"""Read and check params.yaml."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, Node
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent

from convs2s.base.files import read_lines
from convs2s.config.faults import validate
from convs2s.config.params import Params

PYTHONS_OWN = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)
LONGEST = 1 << 18
"""Bytes of a YAML file that people write: 13 times the largest of ours."""
MOVED = {"search": "run", "split_sentences": "package"}
"""Keys that version 1.1 had in the section translate -> the section that has them now."""
MOST_VALUES = 100_000
"""In a YAML file, with its aliases written out: dvc.lock has them for dozens of seeds."""


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
    """Return the text of a YAML file that people write; a ValueError if it is not UTF-8, or much too long."""
    if path.is_file() and path.stat().st_size > LONGEST:
        raise ValueError(
            f"{path} has {path.stat().st_size:,} bytes; expected at most {LONGEST:,}. Is it another file?"
        )
    return "".join(f"{line}\n" for line in read_lines(path))


@functools.lru_cache(maxsize=64)
def parse_params(text: str, origin: str) -> Params:
    """Check the text of a params.yaml; recent results are cached.

    Raises:
        ValueError: if it is not YAML, or a key is unknown, missing, ill-typed or impossible; the message
            lists every fault with the key's dotted name.
    """
    return validate(Params, move_keys(parse_yaml(text, origin)), f"{origin} is invalid")


def move_keys(content: Any) -> Any:
    """Return the content of a params.yaml with the keys of MOVED where they are now.

    One that is in both places stays in the old one, and is unknown there.
    """
    if not isinstance(content, dict):
        return content
    for key, section in MOVED.items():
        before, now = content.get("translate"), content.get(section)
        if isinstance(before, dict) and isinstance(now, dict) and key in before and key not in now:
            rest = {name: value for name, value in before.items() if name != key}
            content = {**content, "translate": rest, section: {**now, key: before[key]}}
    return content


class CountingComposer(Composer):
    """Refuses YAML whose aliases expand to too many values: a few lines may expand to billions."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.values = 0
        self.values_of: dict[str, int] = {}

    def compose_node(self, parent: Node | None, index: Any) -> Any:
        """Compose a node, and count its values; those of an alias are its anchor's."""
        event = self.parser.peek_event()
        before = self.values
        is_alias = isinstance(event, AliasEvent) and event.anchor in self.anchors  # ruamel refuses others
        self.values += self.values_of.get(event.anchor, MOST_VALUES) if is_alias else 1
        if self.values > MOST_VALUES:
            raise ValueError(f"expected at most {MOST_VALUES:,} values, with all aliases (*name) written out")
        node = super().compose_node(parent, index)
        if event.anchor and not is_alias:
            self.values_of[event.anchor] = self.values - before
        return node


def parse_yaml(text: str, origin: str) -> Any:
    """Return the content of a YAML file; raise a ValueError if it is not YAML, or expands to too much."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = CountingComposer
    try:
        # YAML 1.2 by ruamel, as DVC reads it: 1e-4 is a number there, a string to PyYAML. Its parser in C is
        # faster, but shows no lines in messages.
        return yaml.load(text)
    except RecursionError as error:
        raise ValueError(f"{origin}: expected values, found lists or mappings nested too deeply.") from error
    # ruamel also lets Python's own errors through, as for a date with month 13 or a list as a key.
    except (YAMLError, *PYTHONS_OWN) as error:
        reason = str(error).partition("\n\nTo suppress this check")[0]  # ruamel's advice on duplicate keys
        raise ValueError(f"{origin} is not valid YAML: {reason}") from error


def flatten_values(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of params.yaml by dotted name; nested values of a key stay together."""
    result: dict[str, Any] = {}
    for section, keys in sections.items():
        named = {f"{section}.{key}": value for key, value in keys.items()} if isinstance(keys, dict) else {}
        result |= named or {str(section): keys}
    return result
