"""The documentation is correct: commands parse, links have a target, examples run."""

import copy
import re
from pathlib import Path

import pytest
from dvc.utils.collections import merge_dicts
from ruamel.yaml import YAML

from convs2s.config.params import Params
from tests.docs import pages
from tests.docs.commands import check, params
from tests.docs.pages import ROOT
from tests.package.small_package import write_small_package

GUIDES = sorted(
    p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").glob("*.md") if p.name != "results.md"
)
PAGES = ["README.md", "SECURITY.md", *GUIDES]
LINKED = [*PAGES, "docs/results.md", "CHANGELOG.md", "CONTRIBUTING.md"]
PROGRAMS = ("make", "python", "convs2s", "dvc")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_would_work(page: str) -> None:
    """Readers copy commands from the page, from its blocks and from its text."""
    text = pages.read(page)
    inline = [code for code in pages.inline_code(text) if code.split()[0] in PROGRAMS and " " in code]
    for shell in (*pages.blocks(text, "sh"), *inline):
        for command in pages.commands(shell):
            check(command)


@pytest.mark.parametrize("page", LINKED)
def test_every_link_has_a_target(page: str) -> None:
    """A link must lead to a file and heading that exist."""
    for target in pages.links(pages.read(page)):
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in pages.anchors(path.read_text(encoding="utf-8")), target


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tiny model in data/models/1."""
    folder = tmp_path_factory.mktemp("models")
    package = write_small_package(folder)
    (folder / "data" / "models").mkdir(parents=True)
    package.rename(folder / "data" / "models" / "1")
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_python_examples_run(page: str, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples run with a tiny model; in blocks without a model, only the imports run."""
    monkeypatch.chdir(models)
    for block in pages.blocks(pages.read(page), "python"):
        lines = (
            block.split("\n") if "data/models" in block else re.findall(r"^(?:from|import) .*", block, re.M)
        )
        exec(compile("\n".join(lines), page, "exec"), {})


@pytest.mark.parametrize("page", PAGES)
def test_yaml_examples_fit_the_schema(page: str) -> None:
    """Each is a part of params.yaml: merged into the default, it must give a valid file."""
    for block in pages.blocks(pages.read(page), "yaml"):
        part = YAML(typ="safe", pure=True).load(block)
        Params.model_validate(merge_dicts(copy.deepcopy(params()), part))
