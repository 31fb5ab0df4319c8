"""The documentation is correct: commands parse, paths and links exist, examples run, messages are real."""

import ast
import copy
import inspect
import re
from pathlib import Path
from typing import Any

import dvc
import pytest
from ruamel.yaml import YAML

from convs2s.config.params import Params
from tests.docs import messages, pages
from tests.docs.commands import Wrong, check, check_param, params
from tests.docs.pages import ROOT
from tests.package.small_package import write_small_package

GUIDES = sorted(
    p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").glob("*.md") if p.name != "results.md"
)
PAGES = ["README.md", "SECURITY.md", *GUIDES, "data/own/README.md"]
LINKED = [*PAGES, "docs/results.md", "CHANGELOG.md", "CONTRIBUTING.md"]
PROGRAMS = ("make", "python", "convs2s", "dvc")
UNDECLARED = (
    "data/own",
    "data/tatoeba-en-de",
    "data/sweeps",
    "data/checkpoints",
    "data/downloads",
    "data/report",
)
"""Folders of data/ that are not outputs of a stage."""


def faults(page: str) -> list[str]:
    """Return the errors in the commands of a page, in its blocks and in its text."""
    text, found = pages.read(page), []
    lines = [line for block in pages.blocks(text, "sh") for line in pages.commands(block)]
    for code in pages.inline_code(text):
        if code.split()[0] in PROGRAMS and " " in code:
            lines += list(pages.commands(code))
    for line in lines:
        try:
            check(line)
        except Wrong as wrong:
            found.append(f"{' '.join(line)}: {wrong}")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_command_would_work(page: str) -> None:
    """Readers copy commands from the page."""
    assert faults(page) == []


@pytest.mark.parametrize("page", PAGES)
def test_code_in_the_text_stays_on_one_line(page: str) -> None:
    """Code broken across two lines would escape the checks here."""
    text = pages.FENCE.sub("", pages.read(page))
    assert [line for line in text.splitlines() if line.count("`") % 2] == []


@pytest.mark.parametrize(
    "line",
    [
        "make repo",
        "make sweep TABEL=table5",
        "make sweep TABLE=table6",
        'make flow SET="train.droput=0.3"',
        "python -m pipelines.reprot",
        "python -m benchmarks.table3",
        "python -m pipelines.preset own-data --ot x.yaml",
        "python -m pipelines.report.scores --all",
        "python -m convs2s.score.tables",
        "convs2s translate --modell data/models/1",
        "convs2s trnaslate",
        "convs2s import-fairseq a.pt --source-dict s --out m",
        "dvc reproduce",
        "dvc exp run -S translate.beams=3",
        "git push",
        "git add experiments/recrods",
        "pip install -e '.[onnx]'",
        "pip install torch",
        "sacrebleu -t wmt99 -l en-fr --echo src",
        "PREFECT_URL=http://localhost make flow",
        "sudo systemctl start convs2s-serve",
        "sbatch --array=1-4 deploy/work.slurm",
        "taskset --cpu-list 0 dvc reproduce",
        "prefect server start",
    ],
)
def test_a_wrong_command_is_found(line: str) -> None:
    """A check that cannot fail would prove nothing."""
    with pytest.raises(Wrong):
        for command in pages.commands(line):
            check(command)


def test_a_command_keeps_its_words_and_loses_comment_and_redirections() -> None:
    """Comments, pipes and line continuations must be read as the shell reads them."""
    script = "echo 'a # b' | cat \\\n  -n > out.txt # end\nmake x && make y\n\n"
    assert list(pages.commands(script)) == [["echo", "a # b"], ["cat", "-n"], ["make", "x"], ["make", "y"]]


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
        if re.search(r"[A-Z]{3,}|\.\.\.|\s|[*]", word):
            continue
        if "/" in word and word.split("/")[0] in folders:
            assert exists(word.rstrip("/"), outputs), f"{page}: there is no {word}"
        elif is_parameter(word):
            check_param(word)


def is_parameter(word: str) -> bool:
    """Return whether code looks like a key of params.yaml: a section and a name, joined by a dot."""
    names = re.fullmatch(r"([a-z]+)(\.[a-z_]+)+", word)
    return names is not None and names[1] in params() and not word.endswith((".json", ".py", ".yaml"))


def test_a_path_that_no_stage_writes_is_found() -> None:
    """The outputs declared in dvc.yaml decide which paths under data/ exist."""
    outputs = declared()
    assert exists("data/models/1", outputs)
    assert exists("data/evaluation", outputs)
    assert exists("data/evaluation/metrics.json", outputs)
    assert not exists("data/evaluation/metrics.yaml", outputs)
    assert not exists("data/model/1", outputs)
    assert not exists("docs/tutorials.md", outputs)


def broken_links(page: str, text: str) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found = []
    for target in pages.links(text):
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        if not path.exists() or (anchor and anchor not in pages.anchors(path.read_text(encoding="utf-8"))):
            found.append(target)
    return found


@pytest.mark.parametrize("page", LINKED)
def test_every_link_has_a_target(page: str) -> None:
    """A link must lead to a file and heading that exist."""
    assert broken_links(page, pages.read(page)) == []


def test_a_broken_link_is_found() -> None:
    """The check must find a wrong file name as well as a wrong anchor."""
    text = (
        "[a](docs/tutorial.md) [b](docs/x.md) [c](docs/parameters.md#tuning-alpha) [d](docs/parameters.md#x)"
    )
    assert broken_links("README.md", text) == ["docs/x.md", "docs/parameters.md#x"]


def test_the_index_names_every_page() -> None:
    """Readers start at docs/README.md and would not find a page that it omits."""
    assert {"README.md", *pages.links(pages.read("docs/README.md"))} >= {
        path.name for path in (ROOT / "docs").glob("*.md")
    }


def cited(folder: Path) -> set[str]:
    """Return the choices cited in the text files of a folder, as in (T8) or (T27 to T29)."""
    files = [path for path in folder.rglob("*") if path.suffix in {".py", ".md", ".yaml"} and path.is_file()]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return set(re.findall(r"\bT[1-9]\d?\b", text))


@pytest.mark.parametrize("folder", ["convs2s", "pipelines", "experiments", "benchmarks", "tests", "docs"])
def test_every_choice_that_is_cited_is_explained(folder: str) -> None:
    """Readers look up a citation such as (T8) in docs/traps.md."""
    explained = set(re.findall(r"^### (T\d+): \S", pages.read("docs/traps.md"), re.MULTILINE))
    assert explained == {f"T{number}" for number in range(1, 39)}
    assert cited(ROOT / folder) <= explained


def test_every_choice_names_its_code() -> None:
    """Each entry of docs/traps.md must end with a file that exists."""
    for entry in re.split(r"^### ", pages.read("docs/traps.md"), flags=re.MULTILINE)[1:]:
        found = re.search(r"Code: `(\S+)`$", re.split(r"\n## ", entry)[0].strip())
        assert found is not None, entry
        assert (ROOT / found[1]).is_file(), found[1]


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
    """Examples run with a tiny model; in blocks without a model, only imports and calls are checked."""
    monkeypatch.chdir(models)
    for block in pages.blocks(pages.read(page), "python"):
        if "data/models" in block:
            exec(compile(block, page, "exec"), {})
        else:
            check_calls(block)


def check_calls(block: str) -> None:
    """Execute a block's imports, and bind the arguments of each call of an imported function."""
    tree, names = ast.parse(block), dict[str, Any]()
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(list(imports), []), "imports", "exec"), names)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names:
            keywords = {keyword.arg: None for keyword in call.keywords if keyword.arg}
            inspect.signature(names[call.func.id]).bind(*call.args, **keywords)


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ("from convs2s.config.load import load_param", ImportError),
        ("from convs2s.config.load import load_params\nload_params(file='params.yaml')", TypeError),
        ("from convs2s.decode.translations import one_line\none_line()", TypeError),
    ],
)
def test_a_wrong_call_is_found(block: str, error: type[Exception]) -> None:
    """The check must find an unknown name, an unknown argument and a missing one."""
    with pytest.raises(error):
        check_calls(block)


@pytest.mark.parametrize("page", PAGES)
def test_yaml_examples_fit_the_schema(page: str) -> None:
    """Each is a part of params.yaml: merged into the default, it must give a valid file."""
    for block in pages.blocks(pages.read(page), "yaml"):
        Params.model_validate(merged(params(), YAML(typ="safe", pure=True).load(block)))


def merged(values: Any, changes: Any) -> Any:
    """Return values with some replaced; lists are replaced whole."""
    if not isinstance(values, dict) or not isinstance(changes, dict):
        return copy.deepcopy(changes)
    return {
        key: merged(values.get(key), changes[key]) if key in changes else values[key] for key in values
    } | {key: value for key, value in changes.items() if key not in values}


@pytest.fixture(scope="module")
def literals() -> list[str]:
    """Return the string literals of the project and of DVC's locking code."""
    package = Path(dvc.__file__).parent
    ours = [path for folder in ("convs2s", "pipelines") for path in (ROOT / folder).rglob("*.py")]
    return messages.literals([*ours, package / "lock.py", package / "rwlock.py"])


def test_the_messages_of_the_troubleshooting_page_are_those_of_the_code(literals: list[str]) -> None:
    """Readers search the page for the message they see."""
    quoted = re.findall(r"^### `(.+)`$", pages.read("docs/troubleshooting.md"), re.MULTILINE)
    assert len(quoted) > 20
    assert [message for message in quoted if not messages.occurs(message, literals)] == []


def test_a_message_that_no_code_has_is_found(literals: list[str]) -> None:
    """The check must notice a message that differs only in the middle."""
    assert messages.occurs("Training diverged: ... wanted a finite one", literals)
    assert not messages.occurs("Training diverged: ... wanted an infinite one", literals)
