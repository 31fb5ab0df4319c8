"""The code determines what reruns: each stage depends on a digest of all modules that it can execute."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.stages import _code as code

ROOT = Path(__file__).parents[2]
PACKAGES = (Path("convs2s"), Path("pipelines/stages"))

# A project of two stages: `one` needs words and, inside a function, numbers; `two` needs only the package.
FILES = {
    "convs2s/__init__.py": "def load():\n    from convs2s.search import find\n\n    return find\n",
    "convs2s/words.py": "import os\n\nfrom convs2s import letters\n\n\ndef split():\n    return letters.A\n",
    "convs2s/letters.py": "A = 1\n",
    "convs2s/numbers/__init__.py": "from convs2s.numbers.base import TEN\n",
    "convs2s/numbers/base.py": "TEN = 10\n",
    "convs2s/numbers/prime.py": "TWO = 2\n",
    "convs2s/search.py": "def find():\n    return 1\n",
    "convs2s/config/__init__.py": "",
    "convs2s/config/filter.py": """
        from convs2s.config.kinds import kind

        class FilterParams:
            size: int
        """,
    "convs2s/config/kinds.py": "def kind():\n    return 1\n",
    "pipelines/stages/__init__.py": "",
    "pipelines/stages/__main__.py": "from convs2s.config.filter import FilterParams\n",
    "pipelines/stages/values.py": "SEEDS = 1\n",
    "pipelines/stages/one.py": """
        from convs2s.words import split

        def run():
            from convs2s.numbers.prime import TWO
        """,
    "pipelines/stages/two.py": "from convs2s import load\n\n\ndef run():\n    return load\n",
}
ALWAYS = {
    "convs2s",
    "convs2s.config",
    "convs2s.config.kinds",
    "pipelines.stages",
    "pipelines.stages.__main__",
}
ONE = {"words", "letters", "numbers", "numbers.base", "numbers.prime"}


DOCUMENTED = """
    '''What it is.'''


    SIZE = 1  # why
    '''of the size'''


    def f():
        '''Returns one.'''
        return "#1"
"""
CODE = """
    def f(): 'é doc'; x = 1; return 'é', f'{x}'


    def g():
        if f():
            pass
        return "#1"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(project: Path) -> dict[str, str]:
    found = code.digests(code.read_project(PACKAGES))
    return {f"{name}.txt": "\n".join(lines) for name, lines in found.items()}


def names(digest: str) -> set[str]:
    return {line.split(" ")[1] for line in digest.splitlines()}


def test_a_digest_names_every_module_that_a_stage_can_execute(project: Path) -> None:
    """Imports are followed into packages and functions; a package's functions only if it is imported."""
    found = {name: names(text) for name, text in written(project).items()}
    assert found == {
        "one.txt": ALWAYS | {f"convs2s.{name}" for name in ONE} | {"pipelines.stages.one"},
        "two.txt": ALWAYS | {"convs2s.search", "pipelines.stages.two"},
    }


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("convs2s/letters.py", "A = 1", "A = 2"),
        ("convs2s/numbers/prime.py", "TWO = 2", "TWO = 3"),
        ("convs2s/numbers/base.py", "TEN = 10", "TEN = 10.0"),
        ("pipelines/stages/one.py", "TWO", "TWO as DOS"),
    ],
)
def test_an_edit_changes_the_digests_of_the_stages_that_can_execute_it(
    name: str, old: str, new: str, project: Path
) -> None:
    """No other digest changes."""
    before = written(project)
    path = project / name
    path.write_text(path.read_text().replace(old, new))
    after = written(project)
    assert [stage for stage in before if before[stage] != after[stage]] == ["one.txt"]


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def f():\n        for a in b:\n            {}\n",
        "try:\n    a\nexcept E:\n    {}\nfinally:\n    b\n",
        "try:\n    a\nexcept* E:\n    b\nelse:\n    {}\n",
        "if a:\n    b\nelif c:\n    {}\n",
        "async def f():\n    async with a:\n        {}\n",
        "match a:\n    case 1:\n        b\n    case 2:\n        {}\n",
    ],
)
def test_statements_are_found_in_every_block(source: str, tmp_path: Path) -> None:
    """These statements are imports, and docstrings to leave out."""
    path = tmp_path / "module.py"
    path.write_text(source.format("from a import b"))
    assert code.Module(path).imports == {"a.b"}
    assert code.Module(path).own_imports == (set() if "def" in source else {"a.b"})
    assert digest(tmp_path, source.format("'text'")) == digest(tmp_path, source.format("'other'"))


def test_a_schema_module_is_left_out_but_what_it_imports_is_not(project: Path) -> None:
    """DVC tracks the values of params.yaml; the code that reads them counts as code."""
    before = written(project)
    schema = project / "convs2s/config/filter.py"
    schema.write_text(schema.read_text() + "    ratio: float\n")
    assert written(project) == before
    schema.write_text(schema.read_text() + "\n    def total(self):\n        return self.size\n")
    assert names(written(project)["one.txt"]) > names(before["one.txt"])


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    size: int = 3\n",
        "class A:\n    size: int\n\n    @property\n    def double(self):\n        return 2 * self.size\n",
        "class A:\n    @model_validator(mode='after')\n    def _fits(self):\n        return B()\n",
        "class A:\n    size: int\n\n\ndef helper():\n    return 1\n",
        "class A:\n    size: int\n\n\nSIZE = len('abc')\n",
        "A = int | None\n",
    ],
)
def test_a_module_that_holds_more_than_a_schema_counts_as_code(source: str, tmp_path: Path) -> None:
    """Defaults, properties, functions, computed constants and validators that change a value can matter."""
    path = tmp_path / "config" / "a.py"
    path.parent.mkdir()
    path.write_text(source)
    assert not code.Module(path).is_schema
    path.write_text(
        "from typing import Any\n\nSize = int | None\n\n\nclass A:\n    '''Doc.'''\n\n    size: Size\n"
    )
    assert code.Module(path).is_schema


def test_of_the_schema_only_what_reads_it_is_code() -> None:
    """Each section of params.yaml is a module that holds nothing else."""
    modules = {path.stem: code.Module(path) for path in (ROOT / "convs2s/config").glob("[!_]*.py")}
    counted = {name for name, module in modules.items() if not module.is_schema}
    assert counted == {"faults", "kinds", "layers", "load", "older"}
    assert set(modules) - counted >= {
        "download",
        "tokenize",
        "filter",
        "model",
        "train",
        "translate",
        "params",
    }


@pytest.mark.parametrize(
    "edit",
    [
        lambda source: source.replace("# why", "# because"),
        lambda source: source.replace("What it is.", "Something else.\n\n    More."),
        lambda source: source.replace("Returns one.", "ü, Returns 1."),
        lambda source: source.replace("\n\n\n", "\n\n\n\n"),
        lambda source: source.replace("of the size", "of another size"),
        lambda source: source.replace("SIZE = 1", "SIZE = 1  "),
    ],
)
def test_comments_docstrings_and_empty_lines_do_not_count(edit: Callable[[str], str], tmp_path: Path) -> None:
    """An edited docstring must not rerun a training."""
    source = textwrap.dedent(DOCUMENTED)
    assert edit(source) != source
    assert digest(tmp_path, source) == digest(tmp_path, edit(source))


@pytest.mark.parametrize(
    ("old", "new"),
    [('"#1"', '"#2"'), ("    return", "return"), ("x = 1", "x = 2"), ("'é'", "'e'"), ("f'{x}'", "f'{x!r}'")],
)
def test_everything_else_counts(old: str, new: str, tmp_path: Path) -> None:
    """For example strings in use, indentation, and code on the same line as a docstring."""
    source = textwrap.dedent(CODE)
    assert old in source
    assert digest(tmp_path, source) != digest(tmp_path, source.replace(old, new))


STRING = 'TEXT = """a\n\n    b\n"""\n'


@pytest.mark.parametrize("prefix", ["", "f", "rb"])
@pytest.mark.parametrize(("old", "new"), [("a\n", "a  \n"), ("a\n\n", "a\n"), ("a\n\n", "a\n  \n")])
def test_white_space_in_a_string_counts(old: str, new: str, prefix: str, tmp_path: Path) -> None:
    """It is part of the value, at the end of a line and in an empty line as well."""
    source = STRING.replace('"""', f'{prefix}"""', 1)
    assert digest(tmp_path, source) != digest(tmp_path, source.replace(old, new))
    assert digest(tmp_path, source) == digest(tmp_path, source.replace('"""\n', '"""  \n\n'))


def digest(folder: Path, source: str) -> str:
    path = folder / "module.py"
    path.write_text(source, encoding="utf-8")
    return code.Module(path).digest


def test_every_module_of_the_project_changes_just_the_stages_that_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Change one statement in each module in turn; stages that do not reach it keep their digests."""
    monkeypatch.chdir(ROOT)
    project = code.read_project(PACKAGES)
    before = code.digests(project)
    reaching = {stage: code.reach([code.RUNNER, f"pipelines.stages.{stage}"], project) for stage in before}
    assert len(project) > 100
    for name, module in project.items():
        edited = code.Module(tmp_path / module.path)
        edited.path.parent.mkdir(parents=True, exist_ok=True)
        edited.path.write_text(module.source + "\nCHANGED = [1]\n", encoding="utf-8")
        after = code.digests({**project, name: edited})
        changed = {stage for stage in before if before[stage] != after[stage]}
        assert changed == {stage for stage, reached in reaching.items() if name in reached}, name


def test_an_edit_of_the_table_of_values_reruns_only_what_its_rows_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The runner must not reach it, or a new row would rerun trainings; `package` shows some of the keys."""
    monkeypatch.chdir(ROOT)
    found = code.digests(code.read_project(PACKAGES))
    reaching = {
        stage for stage, lines in found.items() if any(" pipelines.stages._params" in one for one in lines)
    }
    assert reaching == {"package"}
