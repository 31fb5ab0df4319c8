"""CONTRIBUTING.md and docs/style.md are right about tests, stages and what the code says."""

import itertools
import re
import shlex
import subprocess
import tomllib
from collections.abc import Container
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from convs2s.base.files import Pair, read_folder, read_pairs, write_folder
from tests.docs import pages
from tests.docs.pages import ROOT
from tests.pipeline import run_here
from tests.presets import rendered

PAGE = pages.read("CONTRIBUTING.md")
TESTS = PAGE.partition("## Run tests\n")[2].partition("\n## ")[0]
STAGE = PAGE.partition("## Run one stage\n")[2].partition("\n## ")[0]
PYTEST = tomllib.loads(pages.read("pyproject.toml"))["tool"]["pytest"]["ini_options"]
MARKS = [marker.partition(":")[0] for marker in PYTEST["markers"]]


def recipe(target: str) -> str:
    """Return the commands of a target of the Makefile."""
    (commands,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", pages.read("Makefile"), re.MULTILINE)
    return str(commands)


def selected_by(target: str) -> str:
    """Return the expression of marks by which a target selects tests; `target` may set variables, too."""
    command = ["make", "--no-print-directory", "-n", *target.split()]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in printed.splitlines() if line.startswith("python -m pytest ")]
    words = [*shlex.split(PYTEST["addopts"]), *shlex.split(line)[3:]]
    return words[len(words) - words[::-1].index("-m")]


def selects(expression: str, marks: Container[str]) -> bool:
    """Return whether a test with these marks is selected."""
    return bool(eval(expression, {mark: mark in marks for mark in MARKS}))


def test_every_mark_has_its_row_and_its_target() -> None:
    """Whoever marks a test must know what then runs it."""
    lines = [line for line in TESTS.splitlines() if line.startswith("| ")]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[1:]]
    assert [row[0] for row in rows] == ["none", *MARKS]
    for mark, _, command in rows:
        if mark != "gpu":
            assert selects(selected_by(command.removeprefix("make ")), [mark]), mark


def test_ci_runs_every_test_that_needs_no_gpu() -> None:
    """A test that CI leaves out can fail for days unseen."""
    targets = re.findall(r"^run (.*)$", pages.read(".ci/run"), re.MULTILINE)
    expressions = [selected_by(target) for target in targets]
    on_cpu = [mark for mark in MARKS if mark != "gpu"]
    for count in range(len(on_cpu) + 1):
        for marks in itertools.combinations(on_cpu, count):
            assert any(selects(expression, marks) for expression in expressions), marks
    assert ".ci/run\n" in pages.read(".github/workflows/ci.yml")


def test_ci_runs_on_the_oldest_and_the_newest_python() -> None:
    """A version that pyproject.toml names must be one that we know to work; most faults are at the ends."""
    project = tomllib.loads(pages.read("pyproject.toml"))["project"]
    classifiers = "\n".join(project["classifiers"])
    named = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    named.sort(key=lambda version: int(version.partition(".")[2]))
    assert project["requires-python"].partition(",")[0] == f">={named[0]}"
    jobs = YAML(typ="safe", pure=True).load(pages.read(".github/workflows/ci.yml"))["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == [named[0], named[-1]]
    inputs = [step.get("with", {}) for job in jobs.values() for step in job["steps"]]
    versions = {step["python-version"] for step in inputs if "python-version" in step}
    assert versions == {named[0], "${{ matrix.python }}"}


def test_a_check_before_a_commit_finds_what_ci_finds() -> None:
    """What passes here must not fail there: the rules, the format and the types."""
    assert {"ruff check .", "ruff format --check .", "mypy"} <= set(
        map(str.strip, recipe("lint").splitlines())
    )
    assert re.search(r"^check: lint test$", pages.read("Makefile"), re.MULTILINE)
    assert "run: make lint\n" in pages.read(".github/workflows/ci.yml")


def test_a_stage_runs_by_its_command(tmp_path: Path) -> None:
    """Readers copy the command. It needs no DVC, and with another --out it leaves `data` as it is."""
    kept: list[Pair] = [("a b", "c d"), ("e f", "g h")]
    for split, pairs in {"train": [*kept, ("", "x")], "augmented": [], "valid": [("v", "w")]}.items():
        write_folder(tmp_path / "data" / "tokenized" / split, pairs)
    for split in ("train", "valid", "development", "test"):
        write_folder(tmp_path / "data" / "raw" / split, [])
    (tmp_path / "params.yaml").write_text(rendered("multi30k-en-de"), encoding="utf-8")
    (block,) = pages.blocks(STAGE, "sh")
    command = " ".join(block.replace("\\\n", " ").split())
    run_here(command.replace("/tmp/", f"{tmp_path}/"), "filter", tmp_path)
    assert list(read_folder(tmp_path / "filtered" / "train")) == kept
    assert {path.name for path in tmp_path.iterdir()} == {"data", "params.yaml", "filtered"}


def test_the_style_quotes_the_code(tmp_path: Path) -> None:
    """An example that the code no longer has would not be our style any more."""
    comment, error = pages.blocks(pages.read("docs/style.md"), "text")
    file = pages.read("convs2s/model/multistep_attention.py")
    assert " ".join(comment.split()) in " ".join(file.split())
    (tmp_path / "train.en").write_text("a\nb\n")
    (tmp_path / "train.de").write_text("a\n")
    with pytest.raises(ValueError, match="Line i of one") as caught:
        list(read_pairs(tmp_path / "train.en", tmp_path / "train.de"))
    said = str(caught.value).replace(f"{tmp_path}/", "data/own/")
    assert re.sub(r"[\d,]+ ?", "N ", said) == re.sub(r"[\d,]+ ?", "N ", " ".join(error.split()))


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    """One that waits in vain would hold up all others, and nobody would know what it waits for."""
    assert pytestconfig.pluginmanager.hasplugin("timeout")
    assert float(pytestconfig.getini("timeout")) == 120


@pytest.mark.slow
def test_a_test_with_a_mark_has_ten_minutes(request: pytest.FixtureRequest) -> None:
    """Two would not do for trainings on a busy machine."""
    mark = request.node.get_closest_marker("timeout")
    assert mark is not None
    assert mark.args == (600,)
