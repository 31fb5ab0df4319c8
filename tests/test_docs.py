"""The documentation is correct: commands parse, links have a target, examples run."""

import copy
import re
import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from dvc.repo import Repo
from dvc.rwlock import RWLockFileCorruptedError
from dvc.stage.exceptions import MissingDataSource
from dvc.utils.collections import merge_dicts
from dvc.utils.serialize import YAMLFileCorruptedError
from ruamel.yaml import YAML

from convs2s.config.load import parse_yaml
from convs2s.config.params import Params
from convs2s.text.sources import remote
from pipelines.stages import _lifetime
from tests.docs import pages
from tests.docs.commands import check, params
from tests.docs.names import exists, is_ours, is_said
from tests.docs.pages import ROOT
from tests.golden import FAIRSEQ_SIZES, PLAIN
from tests.package.small_package import write_small_package
from tests.presets import rendered

GUIDES = sorted(
    p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").glob("*.md") if p.name != "results.md"
)
PAGES = ["README.md", "SECURITY.md", "CONTRIBUTING.md", *GUIDES]
LINKED = [*PAGES, "docs/results.md", "CHANGELOG.md"]
SITE = [page for page in LINKED if page != "README.md"]
PROGRAMS = ("make", "python", "convs2s", "dvc")
PROMISES = [
    "README.md", "SECURITY.md", "docs/change-the-model.md", "docs/reliability.md", "docs/troubleshooting.md",
]  # fmt: skip
"""Pages whose every sentence is held by a test, and whose names must therefore be right."""


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


@pytest.mark.parametrize("page", SITE)
def test_the_site_links_only_to_its_own_pages(page: str) -> None:
    """A link to another page, such as README.md, is an error of `make docs`."""
    names = {target.partition("#")[0] for target in pages.links(pages.read(page))}
    linked = {(ROOT / page).parent / name for name in names if name.endswith(".md")}
    assert {path.resolve() for path in linked} <= {ROOT / name for name in SITE}


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


@pytest.mark.parametrize("page", PROMISES)
def test_every_name_is_that_of_something(page: str) -> None:
    """A file, a key, an option or a variable that is gone, or has another name, leads readers astray."""
    text = pages.read(page)
    prose = re.sub(r"^#+ .*$", "", text, flags=re.MULTILINE)  # headings quote messages
    names = {name for name in pages.inline_code(prose) if name.split()[0] not in {*PROGRAMS, "python"}}
    names |= {name for name in pages.inline_code(prose) if name.startswith("convs2s.")}
    assert [name for name in sorted(names) if not exists(name)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page not in PROMISES])
def test_every_name_of_ours_is_that_of_something(page: str) -> None:
    """These pages also name things of other programs, so only our keys, files and Python API are checked."""
    names = {name for name in pages.inline_code(pages.read(page)) if is_ours(name)}
    assert [name for name in sorted(names) if not exists(name)] == []


def seeds_without_list(folder: Path) -> None:
    """Have DVC read the pipeline with a number where there must be a list."""
    (folder / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    text = re.sub("^seeds: .*", "seeds: 1", rendered("tatoeba-en-de"), flags=re.MULTILINE)
    (folder / "params.yaml").write_text(text)
    with Repo.init(str(folder), no_scm=True) as repo:
        list(repo.index.stages)


def no_database(folder: Path) -> None:
    (folder / "cache.db").write_bytes(b"garbage" * 999)
    sqlite3.connect(folder / "cache.db").execute("PRAGMA quick_check")


def throw(error: Exception) -> None:
    raise error


OF_LIBRARIES: dict[str, Callable[[Path], object]] = {
    "'Value' object is not iterable": seeds_without_list,
    "... missing data 'source': ...": lambda _: throw(MissingDataSource(["data/own"])),
    "file is not a database": no_database,
    "Unable to read RWLock-file ...": lambda _: throw(RWLockFileCorruptedError(".dvc/tmp/rwlock")),
    "unable to read: ...": lambda _: throw(YAMLFileCorruptedError("dvc.lock")),
}
"""Messages that are not ours, and how they come about."""


def as_pattern(message: str) -> str:
    """Return a regular expression for a message in which `...` stands for anything."""
    return ".*".join(map(re.escape, message.strip(" .").split("...")))


def test_every_quoted_message_is_one(tmp_path: Path) -> None:
    """Users search for what they see; a heading that no program says is never found."""
    headings = re.findall("^#+ (.*)$", pages.read("docs/troubleshooting.md"), re.MULTILINE)
    messages = {code for heading in headings for code in pages.inline_code(heading)}
    assert len(messages) > 17
    assert OF_LIBRARIES.keys() <= messages
    assert [message for message in messages - OF_LIBRARIES.keys() if not is_said(message)] == []
    for message, cause in OF_LIBRARIES.items():
        with pytest.raises(Exception, match=as_pattern(message)):
            cause(tmp_path)


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the tables below a heading, without the marks of bold type."""
    section = re.split(r"^## ", pages.read(page).partition(f"## {heading}\n")[2], flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in lines]


def test_the_scores_of_the_readme_are_those_of_the_results() -> None:
    """docs/results.md has the commit and the command of each, so that others can make it again."""
    keys = "valid. perplexity", "BLEU", "chrF2"
    titles, *ours = rows("README.md", "Results")
    others, *theirs = rows("docs/results.md", "Our runs on freely available data")
    assert len(ours) == 7
    places = [others.index(key) for key in ("PPL", "BLEU", "chrF2")]
    scores = [tuple(row[place].partition(" ±")[0] for place in places) for row in theirs]
    for row in ours:
        assert tuple(row[titles.index(key)] for key in keys) in scores, row


def test_the_speed_in_the_readme_is_that_of_the_benchmark() -> None:
    """The ratios to fairseq are those of docs/performance.md at beam 1; with beam 5, batches gain as much."""
    figures = {row[0]: [float(cell.replace(",", "") or 0) for cell in row[1:]] for row in
               rows("docs/performance.md", "Translation")[1:]}  # fmt: skip
    fairseq, single, half, eighth = (
        next(values for name, values in figures.items() if part in name)
        for part in ("fairseq", "float32", "bfloat16", "int8")
    )
    batches, line, avx2 = 0, 2, 4  # columns of beam 1; each is followed by that of beam 5
    of_batches = (single, batches), (half, batches), (eighth, batches), (single, avx2), (eighth, avx2)
    of_lines = (single, line), (half, line), (eighth, line)
    ratios = [round(values[column] / fairseq[column], 1) for values, column in (*of_batches, *of_lines)]
    (sentences,) = re.findall(r"On one core of a Zen 4.*?\(docs", pages.read("README.md"), re.DOTALL)
    assert [float(found) for found in re.findall(r"\d\.\d", sentences)] == ratios
    for values, column in of_batches:
        gain = values[column + 1] / fairseq[column + 1]
        assert gain == pytest.approx(values[column] / fairseq[column], rel=0.1)


def test_the_models_of_fairseq_in_the_readme_are_those_compared() -> None:
    """The README names three: the tests' tiny models, the benchmark's, and the one trained side by side."""
    text = " ".join(pages.read("README.md").split())
    assert f"embeddings of {PLAIN['encoder_embed_dim']}, {FAIRSEQ_SIZES['source']} entries" in text
    (entries,) = re.findall(r"4 \+ 3 blocks of 256, ([\d,]+) entries", text)
    benchmark = pages.read("docs/performance.md")
    assert f"4 + 3 blocks of 256 and {entries} entries, trained by fairseq" in benchmark
    (theirs, ours) = re.findall(r"fairseq has (\d+\.\d+) BLEU and this model (\d+\.\d+)", text)[0]
    assert f"BLEU {ours} ({theirs})" in pages.read("docs/experiments.md")


def test_the_times_of_reliability_are_those_of_the_code() -> None:
    """It says how soon a stage is killed after DVC's end, and on how many inputs properties are tried."""
    text = " ".join(pages.read("docs/reliability.md").split())
    assert f"are killed {_lifetime.GRACE:.0f} seconds later" in text
    (all_inputs, few) = re.findall(r"are tried on ([\d,]+) inputs each, and on (\d+) by `make test`", text)[0]
    assert f"PROPERTY_EXAMPLES={all_inputs.replace(',', '')} " in pages.read("Makefile")
    assert f"QUICK = {few}\n" in pages.read("tests/properties/conftest.py")


def test_the_limit_of_archives_is_that_of_the_code() -> None:
    """Users read in SECURITY.md how much of their disk a stranger's archive can fill."""
    text = " ".join(pages.read("SECURITY.md").split())
    assert f"more than {remote.GROWTH} times its size, and a gigabyte, when unpacked" in text
    assert remote.ALWAYS_ALLOWED == 1 << 30
    files, size = f"{remote.ALWAYS_ALLOWED_FILES:,}", remote.FILE_BYTES >> 10
    assert (
        f"more than {files} files and folders that take, at {size} KiB each, more than {remote.GROWTH}"
        in text
    )


def test_the_readme_names_the_versions_of_python_that_the_package_takes() -> None:
    """pip refuses older ones, and the Makefile newer ones as well: its PyTorch has no wheel for them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    language = "Programming Language :: Python :: 3."
    named = [line.removeprefix(language) for line in project["classifiers"] if line.startswith(language)]
    first, *_, last = [version for version in named if version.isdigit()]
    assert project["requires-python"] == f">=3.{first}"
    assert f"(3, {first}) <= v <= (3, {last})" in pages.read("Makefile")
    for name in ("README.md", "docs/to-a-colleague.md", "Makefile"):
        assert set(re.findall(r"Python 3\.(\d+) to 3\.(\d+)", pages.read(name))) == {(first, last)}


def test_every_file_of_the_tree_exists() -> None:
    """A line names files or folders, those indented ones of the folder above; then comes what they hold."""
    (tree,) = re.findall(r"## The tree\n+```\n(.*?)^```", pages.read("README.md"), re.DOTALL | re.MULTILINE)
    top = Path()
    for line in tree.splitlines():
        names = re.split(r" {2,}", line.strip())[0].split(", ")
        inner = line.startswith(" ")
        for name in names:
            assert list(ROOT.glob(f"{top / name if inner else name}".rstrip("/"))), line
        top = top if inner else Path(names[0])


def test_the_picture_of_the_pipeline_has_every_stage() -> None:
    """One that is added runs without it, so nobody would notice. The page names the stages of an ensemble."""
    stages = parse_yaml(pages.read("dvc.yaml"), "dvc.yaml")["stages"]
    of_ensemble = {name for name, stage in stages.items() if "ensemble" in stage.get("matrix", {})}
    shown = re.findall(r">([a-z-]+)</text>", pages.read("docs/pictures/pipeline.svg"))
    assert sorted(shown) == sorted(stages.keys() - of_ensemble)
    [names] = re.findall(r"once per split or seed: (.*?)\.", pages.read("docs/pipeline.md"), re.DOTALL)
    with_matrix = [name for name, stage in stages.items() if "matrix" in stage and name not in of_ensemble]
    assert sorted(re.findall(r"`(.*?)`", names)) == sorted(with_matrix)


def test_each_concept_of_the_paper_has_its_file() -> None:
    """A reader whom the table sends to a file must find the sections of the paper mentioned there."""
    table = rows("docs/how-it-works.md", "The paper, file by file")[1:]
    assert len(table) > 20
    for concept, sections, name in table:
        text = (ROOT / name.strip("`")).read_text(encoding="utf-8")
        for section in sections.split(", "):
            assert section in text, f"{concept}: {name} does not mention {section}"
