"""After any fault, the next command gives the results of an undisturbed run, and nothing is left behind."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import repository
from tests.faults.base import Base
from tests.faults.cases import Case, Setting, cases, recovers

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("case", cases(), ids=str)
def test_the_next_command_repairs(
    case: Case, base: Base, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Outputs and dvc.lock must equal an undisturbed run's, with no process or unfinished file left."""
    record_property("fault", str(case))
    setting = Setting(repository.copy(base.folder, tmp_path / "repo"), base.counts)
    case.fault(setting)
    assert recovers(setting, base.outputs) == []
