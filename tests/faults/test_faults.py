"""After any fault, the next command gives the results of an undisturbed run, and nothing is left behind."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import repository
from tests.faults.base import Base
from tests.faults.cases import Case, Setting, cases, recovers

pytestmark = pytest.mark.faults

EVERY = 1 if os.environ.get("ALL") else 10  # run every n-th case of each class, including the first


def chosen() -> list[Case]:
    """Return the cases to run: all with ALL=1 in the environment, else a share of each class."""
    seen: dict[str, int] = {}
    found = []
    for case in cases():
        if seen.setdefault(case.kind, 0) % EVERY == 0:
            found.append(case)
        seen[case.kind] += 1
    return found


@pytest.mark.parametrize("case", chosen(), ids=str)
def test_the_next_command_repairs(
    case: Case, base: Base, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Outputs and dvc.lock must equal an undisturbed run's, with no process or unfinished file left."""
    record_property("fault", str(case))
    setting = Setting(repository.copy(base.folder, tmp_path / "repo"), base.counts)
    case.fault(setting)
    assert recovers(setting, base.outputs) == []
