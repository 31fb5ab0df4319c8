"""After any fault, the next command gives the results of an undisturbed run, and nothing is left behind."""

import os
from pathlib import Path

import pytest

from tests.faults import forked, repository
from tests.faults.cases import CASES, Case
from tests.faults.results import differences, outputs

pytestmark = pytest.mark.faults

OF_EACH_KIND = list({case.kind: case for case in reversed(CASES)}.values())[::-1]


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the repository that each case starts from, shared by the processes of pytest-xdist."""
    folder = tmp_path_factory.getbasetemp()
    return repository.make_base((folder if worker_id == "master" else folder.parent) / "faults")


@pytest.mark.parametrize("case", CASES if os.environ.get("ALL") else OF_EACH_KIND, ids=str)
def test_the_next_command_repairs(case: Case, base: Path, tmp_path: Path) -> None:
    """Outputs and dvc.lock must equal an undisturbed run's, with no process or unfinished file left."""
    folder = repository.copy(base, tmp_path / "repo")
    case.fault(folder)
    assert forked.left_running(folder) == []
    assert repository.repro(folder) == 0, folder.with_suffix(".log").read_text()[-3000:]
    assert list(differences(folder, outputs(base))) == []
