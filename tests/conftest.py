"""All tests check shape annotations at run time, and each process computes on one thread."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

import convs2s  # noqa: F401  # before PyTorch, whose threads spin without it
from tests import shapes

# pytest-xdist already keeps the cores busy; more threads than cores would mostly wait for each other.
# Child processes inherit the variable. Set it to run the tests with more threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

install_import_hook(
    ["convs2s.model", "convs2s.train", "convs2s.search", "convs2s.decode"], "tests.shapes.checked"
)

ROOT = Path(__file__).parent.parent
LONG = ["test_end_to_end.py", "test_dvc.py", "test_presets_at_toy_size.py"]
ENGINE_FAILED = (
    "tests/engine: convs2s/engine has its own copy of what convs2s/model computes. After an edit of the "
    "model, edit the copy too, or leave it: the plain model then trains and decodes, with a warning "
    "(docs/change-the-model.md)."
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, and give tests with a mark ten minutes.

    An idle pytest-xdist worker takes tests from the end of another's queue. Run first, each of these files
    stays on one worker, which builds its fixtures once, and none is still running when the others are done.
    """
    for item in items:
        is_marked = any(item.get_closest_marker(name) for name in ("slow", "flows", "faults", "gpu"))
        if is_marked and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Return a name for bytes in the name of a test, and None for other values, which pytest names itself.

    An archive has the time of day, so that pytest-xdist's workers would name tests differently, and refuse
    to start.
    """
    return "bytes" if isinstance(val, bytes) else None


def pytest_configure(config: pytest.Config) -> None:
    """Turn off garbage collection during imports, which leave almost no garbage.

    The xdist controller only hands out tests, so it imports neither tests nor PyTorch.
    """
    gc.disable()
    if config.getoption("dist", "no") == "no":
        config.pluginmanager.import_plugin("tests.tensors")
        config.pluginmanager.import_plugin("tests.yaml_once")


def pytest_collection_finish() -> None:
    """Exclude the many objects of imported modules from garbage collection; it took a tenth of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


def pytest_runtest_setup() -> None:
    """Check shapes anew in each test."""
    shapes.begin()


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """After a failure in tests/engine, say what it means if the model was edited."""
    reports = (report for kind in ("failed", "error") for report in terminalreporter.getreports(kind))
    if any(report.nodeid.startswith("tests/engine/") for report in reports):
        terminalreporter.write_line(ENGINE_FAILED)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real corpora next to the repository, or skip the test if there is none."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no folder ../shared/data with real corpora next to the repository")
    return folder


@pytest.fixture(autouse=True)
def same_signals() -> Iterator[None]:
    """Restore the signal handlers after each test, because importing a command line may change them."""
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    after = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, before[number])
    assert after == before
