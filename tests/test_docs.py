"""The documentation is correct: commands parse, paths and links exist, examples run."""

import copy
import pydoc
import re
from pathlib import Path

import pytest
from dvc.utils.collections import merge_dicts
from ruamel.yaml import YAML

from convs2s.config.params import Params
from tests.docs import pages
from tests.docs.commands import check, check_param, params
from tests.docs.pages import ROOT
from tests.package.small_package import write_small_package

GUIDES = sorted(
    p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").glob("*.md") if p.name != "results.md"
)
PAGES = ["README.md", "SECURITY.md", *GUIDES]
LINKED = [*PAGES, "docs/results.md", "CHANGELOG.md", "CONTRIBUTING.md"]
PROGRAMS = ("make", "python", "convs2s", "dvc")
UNDECLARED = tuple(
    f"data/{name}"
    for name in (
        "own",
        "news",
        "none",
        "tatoeba",
        "sweeps",
        "checkpoints",
        "downloads",
        "report",
        "comparison",
    )
)
"""Folders of data/ that are not outputs of a stage."""


@pytest.mark.parametrize("page", PAGES)
def test_every_command_would_work(page: str) -> None:
    """Readers copy commands from the page, from its blocks and from its text."""
    text = pages.read(page)
    inline = [code for code in pages.inline_code(text) if code.split()[0] in PROGRAMS and " " in code]
    for shell in (*pages.blocks(text, "sh"), *inline):
        for command in pages.commands(shell):
            check(command)


def declared() -> list[str]:
    """Return the outputs of dvc.yaml as regular expressions that match any seed or split."""
    content = YAML(typ="safe", pure=True).load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    found = []
    for stage in content["stages"].values():
        for kind in ("outs", "metrics", "plots"):
            for out in stage.get(kind, ()):
                path = out if isinstance(out, str) else next(iter(out))
                found.append(re.sub(r"\\\$\\\{item[^}]*\\\}", r"[^/]+", re.escape(path)))
    return found


def exists(path: str, outputs: list[str]) -> bool:
    """Return whether a path is in the repository, or is, contains or is inside an output of a stage."""
    if not path.startswith("data/") or path.startswith(UNDECLARED):
        return path.startswith("data/") or (ROOT / path).exists()
    parts = path.split("/")
    parents = ["/".join(parts[:i]) for i in range(1, len(parts) + 1)]
    return any(re.fullmatch(out, parent) for out in outputs for parent in parents[1:]) or any(
        re.match(f"{re.escape(path)}/", out.replace("\\", "")) for out in outputs
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_path_and_parameter_in_the_text_exists(page: str) -> None:
    """Whatever looks like a path of the repository, an output of a stage or a key of params.yaml is one."""
    folders = {path.name for path in ROOT.glob("[!.]*/")} | {"data"}
    outputs = declared()
    for code in pages.inline_code(pages.read(page)):
        word = code.split(":")[0]
        names = re.fullmatch(r"([a-z]+)(\.[a-z_]+)+", word)
        if re.search(r"[A-Z]{3,}|\.\.\.|\s|[*]", word):
            continue
        if "/" in word and word.split("/")[0] in folders:
            assert exists(word.rstrip("/"), outputs), f"{page}: there is no {word}"
        elif names and names[1] in params() and names[2] not in {".json", ".py", ".yaml"}:
            check_param(word)


@pytest.mark.parametrize("page", LINKED)
def test_every_link_has_a_target(page: str) -> None:
    """A link must lead to a file and heading that exist."""
    for target in pages.links(pages.read(page)):
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in pages.anchors(path.read_text(encoding="utf-8")), target


def test_every_documented_name_exists() -> None:
    """The site includes docstrings by these names; building it takes too long for every test run."""
    names = re.findall(r"^\.\. auto\w+:: (\S+)$", pages.read("docs/python.md"), re.MULTILINE)
    assert len(names) > 10
    assert [name for name in names if pydoc.locate(name) is None] == []


def test_the_index_names_every_page() -> None:
    """Readers start at docs/README.md and would not find a page that it omits."""
    names = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert names <= {"README.md", *pages.links(pages.read("docs/README.md"))}


def test_the_papers_map_is_true() -> None:
    """Each file of the table names its section, and each module of the model with one is in it."""
    table = pages.read("docs/how-it-works.md").split("## The paper, file by file")[1]
    rows = re.findall(r"^\| [^|]+ \| (§[^|]+) \| `([^`]+)` \|$", table, re.MULTILINE)
    for sections, file in rows:
        for section in re.findall(r"[\d.]+|App\. \w", sections):
            assert section.rstrip(".") in pages.read(file), f"{file} does not name {section}"
    modules = [path for path in (ROOT / "convs2s/model").glob("*.py") if "§" in path.open().readline()]
    named = {str(path.relative_to(ROOT)) for path in modules}
    assert len(named) > 5 and named <= {file for _, file in rows}


def test_every_choice_that_is_cited_is_explained_and_names_its_code() -> None:
    """Readers look up a citation, such as (T8) or (T27 to T29), in docs/traps.md."""
    _, *entries = re.split(r"^### ", pages.read("docs/traps.md"), flags=re.MULTILINE)
    for entry in entries:
        found = re.search(r"Code: `(\S+)`$", re.split(r"\n## ", entry)[0].strip())
        assert found is not None and (ROOT / found[1]).is_file(), entry
    explained = {entry.partition(":")[0] for entry in entries}
    folders = ("convs2s", "pipelines", "experiments", "benchmarks", "tests", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    for path in (path for path in files if path.suffix in {".py", ".md", ".yaml"}):
        assert set(re.findall(r"\bT[1-9]\d?\b", path.read_text(encoding="utf-8"))) <= explained, path


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
