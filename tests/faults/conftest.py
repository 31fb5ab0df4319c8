"""The repository that all cases share, and the table printed at the end."""

import collections
import os

import pytest

from tests.faults.base import Base, make


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Base:
    """Return the repository that each case starts from, shared by the processes of pytest-xdist."""
    folder = tmp_path_factory.getbasetemp()
    return make((folder if worker_id == "master" else folder.parent) / "faults")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ALL=1, add tests of other folders that are marked `fault` to the table."""
    for item in items if os.environ.get("ALL") else []:
        for mark in item.iter_markers("fault"):
            name = item.name.removeprefix("test_").replace("_", " ")
            item.user_properties.append(("fault", f"{mark.args[0]}: {name}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table: each case by class, with its outcome."""
    table: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            kind, _, name = dict(getattr(report, "user_properties", ())).get("fault", "").partition(": ")
            if kind:
                table[kind].append((name, outcome))
    for kind, lines in sorted(table.items()):
        passed = sum(outcome == "passed" for _, outcome in lines)
        terminalreporter.write_line(f"{kind}: {passed} of {len(lines)} passed")
        for name, outcome in sorted(lines):
            terminalreporter.write_line(f"  {outcome:7} {name}")
    if table:
        count = sum(map(len, table.values()))
        terminalreporter.write_line(f"{count} cases in {len(table)} classes")
