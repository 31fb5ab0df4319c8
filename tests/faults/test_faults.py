"""After any fault, the next command gives the results of an undisturbed run, and nothing is left behind."""

from pathlib import Path

import pytest

from tests.faults import forked, repository
from tests.faults.cases import CASES, Fault
from tests.faults.results import differences, outputs

pytestmark = pytest.mark.faults


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the repository that each case starts from."""
    return repository.make_base(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("fault", CASES.values(), ids=CASES)
def test_the_next_command_repairs(fault: Fault, base: Path, tmp_path: Path) -> None:
    """Outputs and dvc.lock must equal an undisturbed run's, with no process or unfinished file left."""
    folder = repository.copy(base, tmp_path / "repo")
    fault(folder)
    assert forked.left_running(folder) == []
    assert repository.repro(folder) == 0, folder.with_suffix(".log").read_text()[-3000:]
    assert list(differences(folder, outputs(base))) == []
