"""What earlier versions have written still loads, and gives what it gave (tests/golden/README.md)."""

import dataclasses
import json
from typing import Any

import pytest
import torch
from pydantic import Field, create_model
from torch.testing import assert_close

from convs2s.config import format as formats
from convs2s.config.section import later
from convs2s.train.training import State
from tests.golden import states
from tests.later_keys import gained_keys

NEWEST = formats.newest(name.removeprefix("format-") for name in states.names() if name != "before")
ROUNDING = 1e-5


@pytest.mark.parametrize("name", states.names())
def test_a_model_folder_and_a_checkpoint_give_what_they_gave(name: str) -> None:
    """People's folders must translate as before, and trainings go on. Numbers agree but for rounding."""
    recorded = json.loads((states.FOLDER / name / "results.json").read_text(encoding="utf-8"))
    results = states.results_of(states.FOLDER / name)
    assert results.keys() == recorded.keys()
    # A key that came later has its default.
    results["state"] = {key: results["state"][key] for key in recorded["state"]}
    for key, value in recorded.items():
        if isinstance(value, list | float) and key != "translations":
            assert_close(
                torch.tensor(results[key]), torch.tensor(value), atol=ROUNDING, rtol=ROUNDING, msg=key
            )
        else:
            assert results[key] == value, key


def test_a_key_that_older_files_lack_is_accounted_for() -> None:
    """Whoever adds a key learns here what else to do: convs2s/config/format.py has the rule."""
    assert states.find_faults(f"format-{NEWEST}") == []
    with gained_keys():
        assert states.find_faults(f"format-{NEWEST}") == []


@dataclasses.dataclass
class LongerState(State):
    """A state that has gained a key with a default."""

    more: int = 0


GAINED = "has gained more, "
LACKED = f"{GAINED}which older files lack"
REFUSED = f"{GAINED}and versions that read format {NEWEST} refuse or overlook it"


@pytest.mark.parametrize(
    ("file", "more", "fault", "remains"),
    [
        ("translate.json", (int, ...), f"translate.json {LACKED}", True),
        ("params.yaml", (int, ...), f"params.yaml {LACKED}", True),
        ("translate.json", (int, later(0, since=NEWEST)), f"translate.json {REFUSED}", True),
        ("model.json", (int, Field(default=0)), f"model.json {REFUSED}", False),
        ("checkpoint", None, f"checkpoint {REFUSED}", False),
        ("model.json", (int, later(0, since="99.0.0")), "", False),
        ("params.yaml", (int | None, None), "", False),
    ],
)
def test_a_key_that_is_not_accounted_for_is_named(
    file: str, more: Any, fault: str, remains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a default, older files cannot be read; in the old format, older code misreads newer ones.

    A newer format helps against the second, unless the key itself names a version that is too old.
    """
    schema = create_model("Longer", __base__=states.SCHEMAS[file], more=more) if more else LongerState
    monkeypatch.setitem(states.SCHEMAS, file, schema)
    faults = states.find_faults(f"format-{NEWEST}")
    assert [text[: len(fault)] for text in faults] == ([fault] if fault else [])
    monkeypatch.setattr(formats, "FORMAT", "99.0.0")
    assert bool(states.find_faults(f"format-{NEWEST}")) == remains


def test_a_key_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """People have files with this key, and a new version must read them."""
    monkeypatch.setitem(states.SCHEMAS, "checkpoint", dataclasses.make_dataclass("Shorter", ["precision"]))
    assert "checkpoint had epochs: such files must still be read" in states.find_faults(f"format-{NEWEST}")
