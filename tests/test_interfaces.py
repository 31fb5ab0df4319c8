"""What is built on a version goes on working with later ones, as CHANGELOG.md promises (tests/golden)."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden import interfaces

RECORDED = sorted(interfaces.FOLDER.glob("interfaces-*.json"))
assert RECORDED, "without a version, the tests below would be skipped"
OPTIONAL = ", optional"


@pytest.fixture(scope="module")
def current() -> dict[str, dict[str, list[str]]]:
    return interfaces.list_interfaces()


def read(recorded: Path) -> Any:
    return json.loads(recorded.read_text(encoding="utf-8"))


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
@pytest.mark.parametrize("kind", ["commands", "http"])
def test_commands_and_routes_keep_their_options_and_fields(
    recorded: Path, kind: str, current: dict[str, dict[str, list[str]]]
) -> None:
    """Scripts and clients name them. There may be more of each."""
    for name, parts in read(recorded)[kind].items():
        assert set(parts) <= set(current[kind].get(name, ())), name


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_functions_can_be_called_as_before(recorded: Path, current: dict[str, dict[str, list[str]]]) -> None:
    """Parameters keep their names and places, and a new one is optional; results keep their fields."""
    for name, earlier in read(recorded)["python"].items():
        now = current["python"].get(name)
        assert now is not None, name
        assert lost(earlier, now) == [], name
        assert moved(earlier, now) == [], name
        if not inspect.isclass(interfaces.find(name)):  # a result may have more fields
            assert demanded(earlier, now) == [], name


def lost(earlier: list[str], now: list[str]) -> list[str]:
    """Return which parameters or fields are gone, or may no longer be left out."""
    return [part for part in earlier if not {part, part + OPTIONAL} & set(now)]


def moved(earlier: list[str], now: list[str]) -> list[str]:
    """Return which parameters, given by position, would no longer be the ones that are meant."""
    positions = [part.removesuffix(OPTIONAL) for part in now]
    return [
        part
        for place, part in enumerate(earlier)
        if not part.startswith(("keyword ", "*")) and positions.index(part.removesuffix(OPTIONAL)) != place
    ]


def demanded(earlier: list[str], now: list[str]) -> list[str]:
    """Return which parameters a call must have that it needed not have."""
    known = {part.removesuffix(OPTIONAL) for part in earlier}
    return [part for part in now if part not in known and not part.endswith(OPTIONAL)]
