"""What makes a stage stale: each depends on the code that it can execute and on its libraries for text."""

import importlib.metadata
import textwrap
from pathlib import Path

import pytest

from pipelines.stages import _code as code

ROOT = Path(__file__).parents[2]
PACKAGES = (Path("convs2s"), Path("pipelines/stages"))

# A project of two stages: `one` needs words and, inside a function, numbers; `two` needs only the package.
FILES = {
    "convs2s/__init__.py": "def load():\n    from convs2s.search import find\n\n    return find\n",
    "convs2s/words.py": """
        import sacremoses

        from convs2s import letters
        from convs2s.watch.bars import Bar
        """,
    "convs2s/letters.py": "A = 1\n",
    "convs2s/numbers/__init__.py": "from convs2s.numbers.base import TEN\n",
    "convs2s/numbers/base.py": "TEN = 10\n",
    "convs2s/numbers/prime.py": "TWO = 2\n",
    "convs2s/search.py": "def find():\n    return 1\n",
    "convs2s/config/__init__.py": "",
    "convs2s/config/load.py": "def load_params():\n    return 1\n",
    "convs2s/watch/__init__.py": "",
    "convs2s/watch/bars.py": "WIDTH = 80\n",
    "pipelines/stages/__init__.py": "",
    "pipelines/stages/__main__.py": "from convs2s.config.load import load_params\n",
    "pipelines/stages/values.py": "SEEDS = 1\n",
    "pipelines/stages/one.py": """
        from convs2s.words import split

        def run():
            from convs2s.numbers.prime import TWO
        """,
    "pipelines/stages/two.py": "from convs2s import load\n\n\ndef run():\n    return load\n",
}
ALWAYS = {"convs2s", "pipelines.stages", "pipelines.stages.__main__"}
ONE = {"words", "letters", "numbers", "numbers.base", "numbers.prime"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def digests() -> dict[str, list[str]]:
    return code.digests(code.read_project(PACKAGES))


def stale(before: dict[str, list[str]]) -> set[str]:
    """Return the stages whose lines are others than before."""
    after = digests()
    return {stage for stage in before if before[stage] != after[stage]}


def test_a_stage_depends_on_every_module_that_it_can_execute(project: Path) -> None:
    """Imports are followed into packages and functions; a package's functions only if it is imported.

    The folders `config` and `watch` are left out.
    """
    found = {stage: {line.split(" ")[2] for line in lines} for stage, lines in digests().items()}
    assert found == {
        "one": ALWAYS | {f"convs2s.{name}" for name in ONE} | {"pipelines.stages.one", "sacremoses"},
        "two": ALWAYS | {"convs2s.search", "pipelines.stages.two"},
    }


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("convs2s/letters.py", {"one"}),
        ("convs2s/numbers/prime.py", {"one"}),
        ("convs2s/numbers/base.py", {"one"}),
        ("convs2s/search.py", {"two"}),
        ("pipelines/stages/__main__.py", {"one", "two"}),
        ("convs2s/config/load.py", set()),
        ("convs2s/watch/bars.py", set()),
    ],
)
def test_an_edit_makes_stale_what_can_execute_it(name: str, stages: set[str], project: Path) -> None:
    """What reads params.yaml cannot change a result, since values are recorded; nor can what only shows."""
    before = digests()
    (project / name).write_text((project / name).read_text() + "EDITED = 1\n")
    assert stale(before) == stages


def test_a_new_version_of_a_library_for_text_makes_its_stages_stale(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can change words, pieces or scores."""
    before = digests()
    assert f"library {importlib.metadata.version('sacremoses')} sacremoses" in before["one"]
    monkeypatch.setattr(code, "version", lambda name: "0.0")
    assert stale(before) == {"one"}


def test_stages_of_the_project_depend_on_their_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training reruns for none of them if the text stays the same; they are only imported before it."""
    monkeypatch.chdir(ROOT)
    found = {
        stage: {line.split(" ")[2] for line in lines if line.startswith("library ")}
        for stage, lines in digests().items()
    }
    assert found["tokenize"] == {"sacremoses"}
    assert found["vocabulary"] == found["encode"] == {"sentencepiece"}
    assert found["evaluate"] >= {"sacrebleu", "sacremoses", "rouge_score"}
    assert found["train"] == set()


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
def test_imports_and_docstrings_are_found_in_every_block(source: str, tmp_path: Path) -> None:
    """An import that is missed is a stage that does not rerun."""
    module = write(tmp_path, source.format("from a import b"))
    assert module.imports == {"a.b"}
    assert module.own_imports == (set() if "def" in source else {"a.b"})
    assert write(tmp_path, source.format("'text'")).digest == write(tmp_path, source.format("'other'")).digest


SOURCE = '''
"""What it is."""

SIZE = 1  # why
"""of the size"""


def f(a, b):
    """Return a string."""
    if a:
        raise ValueError(f"a is {a}, " + "expected none", 7)
    warnings.warn("careful")
    if b:
        raise Stop("here")
    g(error=OSError(b, "no file"))
    log("text")
    return "#1", f"{a}"
'''


def write(folder: Path, source: str) -> code.Module:
    path = folder / "module.py"
    path.write_text(source, encoding="utf-8")
    return code.Module(path)


def is_same(folder: Path, old: str, new: str) -> bool:
    """Return whether an edit of SOURCE leaves its digest as it is."""
    assert old in SOURCE
    return write(folder, SOURCE).digest == write(folder, SOURCE.replace(old, new)).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# why", "# because"),
        ("What it is.", "Something else.\n\n    More."),
        ("of the size", "of another size"),
        ("\n\n\n", "\n\n\n\n"),
        ("SIZE = 1", "SIZE = (\n    1\n)"),
        ("a is {a}, ", "{a!r} is bad: "),
        ("expected none", "found {len(a)}"),
        ("careful", "take care"),
        ("no file", "there is no file"),
    ],
)
def test_words_for_people_do_not_count(old: str, new: str, tmp_path: Path) -> None:
    """A better message, comment or docstring must not rerun a training."""
    assert is_same(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"#1"', '"#2"'),
        ('f"{a}"', 'f"{a!r}"'),
        ("SIZE = 1", "SIZE = 1.0"),
        ("SIZE = 1", "SIZE = True"),
        ("    g(error", "        g(error"),
        ('log("text")', 'log("other")'),
        ("ValueError", "TypeError"),
        (", 7", ", 8"),
        ("OSError(b", "OSError(a"),
        ('Stop("here")', 'Stop("there")'),
        ("if b:", "if not b:"),
    ],
)
def test_everything_else_counts(old: str, new: str, tmp_path: Path) -> None:
    """For example strings in use, kinds and numbers of errors, and what our own errors carry."""
    assert not is_same(tmp_path, old, new)


def test_an_edit_of_the_table_of_values_reruns_only_what_its_rows_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The runner must not reach it, or a new row would rerun trainings; `package` shows some of the keys."""
    monkeypatch.chdir(ROOT)
    reaching = {
        stage
        for stage, lines in digests().items()
        if any(" pipelines.stages._params" in one for one in lines)
    }
    assert reaching == {"package", "snapshot"}
