"""What makes a stage stale: each depends on the code that it can execute and on its libraries for text."""

import importlib.metadata
from pathlib import Path

import pytest

from pipelines.stages import _code as code

ROOT = Path(__file__).parents[2]

# A project of two stages: `one` needs words and, inside a function, numbers; `two` needs only the package.
FILES = {
    "convs2s/__init__.py": "def load():\n    from convs2s.search import find\n\n    return find\n",
    "convs2s/words.py": (
        "import sacremoses\nfrom convs2s import letters\nfrom convs2s.watch.bars import Bar\n"
    ),
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
    "pipelines/stages/one.py": (
        "from convs2s.words import split\ndef run():\n    from convs2s.numbers.prime import TWO\n"
    ),
    "pipelines/stages/two.py": "from convs2s import load\n\n\ndef run():\n    return load\n",
}
ALWAYS = {"convs2s", "pipelines.stages", "pipelines.stages.__main__"}
ONE = {"words", "letters", "numbers", "numbers.base", "numbers.prime"}


def lines_of_stages() -> dict[str, dict[str, tuple[str, str]]]:
    """Return each stage's modules and libraries in this folder: kind, and digest or version, by name."""
    found = code.digests(code.read_project((Path("convs2s"), Path("pipelines/stages"))))
    lines = {stage: [line.split(" ") for line in lines] for stage, lines in found.items()}
    return {stage: {name: (kind, digest) for kind, digest, name in of} for stage, of in lines.items()}


def test_a_stage_depends_on_what_it_can_execute_and_on_libraries_for_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports are followed into packages and functions; a package's functions only if it is imported.

    The folders `config` and `watch` are left out. A new library can change words, pieces or scores.
    """
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    found = lines_of_stages()
    assert {stage: set(lines) for stage, lines in found.items()} == {
        "one": ALWAYS | {f"convs2s.{name}" for name in ONE} | {"pipelines.stages.one", "sacremoses"},
        "two": ALWAYS | {"convs2s.search", "pipelines.stages.two"},
    }
    assert found["one"]["sacremoses"] == ("library", importlib.metadata.version("sacremoses"))


def test_stages_of_the_project_depend_on_their_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training depends on none: libraries for text are only used before it.

    The runner must not reach the table of values, or a new row would rerun trainings; `package` shows some.
    """
    monkeypatch.chdir(ROOT)
    found = lines_of_stages()
    libraries = {stage: lines.keys() & code.TEXT_LIBRARIES for stage, lines in found.items()}
    assert libraries["tokenize"] == {"sacremoses"}
    assert libraries["vocabulary"] == libraries["encode"] == {"sentencepiece"}
    assert libraries["evaluate"] >= {"sacrebleu", "sacremoses", "rouge_score"}
    assert libraries["train"] == set()
    assert libraries["filter"] == {"nltk"}
    table = {stage for stage, lines in found.items() if "pipelines.stages._params" in lines}
    assert table == {"package", "snapshot"}


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


SAME = [
    ("# why", "# because"),
    ("What it is.", "Something else."),
    ("of the size", "of another size"),
    ("SIZE = 1", "\n\nSIZE = (\n    1\n)"),
    ("a is {a}, ", "{a!r} is bad: "),
    ("careful", "take care"),
    ("no file", "there is no file"),
]
OTHER = [
    ('"#1"', '"#2"'),
    ('f"{a}"', 'f"{a!r}"'),
    ("SIZE = 1", "SIZE = 1.0"),
    ("    g(error", "        g(error"),
    ('log("text")', 'log("other")'),
    ("ValueError", "TypeError"),
    (", 7", ", 8"),
    ("OSError(b", "OSError(a"),
    ('Stop("here")', 'Stop("there")'),
]


@pytest.mark.parametrize(("old", "new"), [*SAME, *OTHER])
def test_only_words_for_people_do_not_count(old: str, new: str, tmp_path: Path) -> None:
    """A better message, comment or docstring must not rerun a training.

    Strings in use do count, as do kinds and numbers of errors, and what our own errors carry.
    """
    before, after = write(tmp_path, SOURCE).digest, write(tmp_path, SOURCE.replace(old, new)).digest
    assert old in SOURCE
    assert (before == after) == ((old, new) in SAME)
