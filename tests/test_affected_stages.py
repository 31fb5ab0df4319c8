"""An edit reruns what it affects and nothing else: DVC itself confirms the table in docs/parameters.md.

A function replaces the stages' commands. It writes outputs that depend on everything a stage declares:
its command and dependencies. An output changes whenever one of these does, so DVC runs every
stage that such an edit can ever affect. Only the stage `snapshot`, which runs every time, really runs.
"""

import contextlib
import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from unittest import mock

import networkx as nx  # type: ignore[import-untyped]
import pytest
from dvc.repo import Repo, lock_repo
from dvc.stage import PipelineStage
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]
from ruamel.yaml import YAML

from pipelines.stages import _code as code
from pipelines.stages.__main__ import start
from tests.light_dvc import light_dvc
from tests.package.small_package import write_start
from tests.pipeline import module_of
from tests.presets import params_of, rendered

ROOT = Path(__file__).parent.parent
SNAPSHOT = "snapshot"
RAN: list[str] = []
"""Names of the stages that ran, in order."""


# Values for params.yaml or text to append to a file, and the stages that this affects directly; those
# downstream follow from the graph.
EDITS: dict[str, tuple[dict[str, object], set[str]]] = {
    "filter.max_words": ({"filter.max_words": 100}, {"filter"}),
    "download.train_pairs": ({"download.train_pairs": None}, {"download@train"}),
    "train.dropout": ({"train.dropout": 0.33}, {"train@1"}),
    "train.seeds": ({"train.seeds": [1, 2]}, {"train@2"}),
    "evaluate.ensembles": (
        {"train.seeds": [1, 3], "evaluate.ensembles": ["all"]},
        {"train@3", "tune-ensemble@all"},
    ),
    "translate.beam_size": ({"translate.beam_size": 3}, {"tune@1"}),
    "tune.alphas": ({"tune.alphas": [0.5, 1.0]}, {"tune@1"}),
    "replace.enabled": ({"replace.enabled": True}, {"align", "replace@1"}),
    "the test set": ({"download.test": [{"kind": "sacrebleu", "name": "wmt14"}]}, {"download@test"}),
    "decoding code": ({"convs2s/decode/beam_search.py": "EDITED = 1\n"}, {"augment", "tune@1"}),
    "the detokenizer": ({"convs2s/text/words/tokenization.py": "EDITED = 1\n"}, {"augment", "truecase"}),
    "a docstring": ({"convs2s/model/seq2seq.py": '"""Edited."""\n# Edited.\n'}, set()),
    "README.md": ({"README.md": "edited\n"}, set()),
    "evaluate.examples": ({"evaluate.examples": 9}, {"evaluate"}),
    "train.checkpoint_updates": ({"train.checkpoint_updates": 12345}, set()),
    "train.checkpoints": ({"train.checkpoints": "elsewhere"}, set()),
    "train.start_from": ({"train.start_from": "start/package"}, {"truecase"}),
    "augment.models": ({"augment.models": ["start/package"]}, {"augment"}),
    "augment.tag": ({"augment.tag": "<bt>"}, {"filter"}),
    "train.tensorboard": ({"train.tensorboard": True}, set()),
}


# Edits that are also undone, and the stages that this affects: DVC restores all other results from its cache.
# DVC cannot list seeds as dependencies, so evaluate depends on the folder of all translations, where those of
# the second seed stay.
UNDONE: dict[str, set[str]] = {"train.seeds": {"evaluate"}, "decoding code": set()}


@contextlib.contextmanager
def edited(repo: Path, changes: Mapping[str, object]) -> Iterator[None]:
    """Edit files of the project; restore them at the end."""
    values = YAML(typ="safe").load(repo / "params.yaml")
    files = {name for name in changes if (repo / name).is_file()}
    before = {name: (repo / name).read_bytes() for name in {"params.yaml", *files}}
    for name, value in changes.items():
        if name in files:
            (repo / name).write_bytes(before[name] + str(value).encode())
        else:
            section, key = name.split(".")
            assert values[section][key] != value
            values[section][key] = value
    (repo / "params.yaml").write_text(json.dumps(values), encoding="utf-8")  # YAML that parses faster
    try:
        yield
    finally:
        for name, content in before.items():
            (repo / name).write_bytes(content)


def with_all_after(names: set[str], graph: "nx.DiGraph[PipelineStage]") -> set[str]:
    """Return these stages and all downstream of them.

    Args:
        names: names of stages.
        graph: edges point from a stage to the stages it needs.
    """
    stages = [stage for stage in graph if stage.name in names]
    assert len(stages) == len(names)
    return names | {after.name for stage in stages for after in nx.ancestors(graph, stage)}


def without_splits(names: Iterable[str]) -> set[str]:
    """Return stage names without their splits and seeds."""
    return {name.partition("@")[0] for name in names}


def play(stage: PipelineStage, **_: object) -> None:
    """Stand in for a stage's command: write outputs that depend on everything the stage declares."""
    RAN.append(stage.name)
    if stage.name == SNAPSHOT:
        start(stage.name, shlex.split(stage.cmd)[4:])
        return
    seen = hashlib.sha256(json.dumps(stage.cmd).encode())
    for dep in (Path(str(dep)) for dep in stage.deps):
        for path in sorted(path for path in [dep, *dep.rglob("*")] if path.is_file()):
            seen.update(path.read_bytes())
    for out in map(Path, map(str, stage.outs)):
        file = out if out.suffix else out / "content"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(seen.hexdigest() + out.name)


def reproduce() -> "tuple[list[str], nx.DiGraph[PipelineStage]]":
    """Run `dvc repro` in this folder; return the stages that ran, in order, and the graph of all."""
    RAN.clear()
    MemoryFileSystem.store.clear()  # DVC keeps what it hashes here, and would search all of it for each file
    with Repo() as repo, lock_repo(repo):
        graph = repo.index.graph
        repo.reproduce(all_pipelines=True)  # there is only one; this way dvc.yaml is read once less
    return RAN.copy(), graph


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a copy of the project in which `dvc repro` has run, with `play` in place of the commands."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("convs2s", "pipelines", "data/tatoeba-en-de"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("dvc.yaml", "README.md", ".dvcignore", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "params.yaml").write_text(rendered("tatoeba-en-de"), encoding="utf-8")
    write_start(folder / "start", params_of("tatoeba-en-de"))
    with (
        contextlib.chdir(folder),
        light_dvc(),
        mock.patch("dvc.stage.run.cmd_run", play),
        mock.patch.object(code, "Module", module_of),
    ):
        Repo.init(no_scm=True).close()
        ran, graph = reproduce()
        assert sorted(ran) == sorted(stage.name for stage in graph)
        yield folder


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_runs_the_stages_that_it_affects_and_no_other(reproduced: Path, name: str) -> None:
    """Users rely on the table in docs/parameters.md, which names the first stages that an edit reruns."""
    changes, first = EDITS[name]
    page = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `?{re.escape(name)}`? [^|]*\|([^|]*)\|$", page, re.MULTILINE)
    assert row is not None, f"docs/parameters.md, 'What runs again', has no row for {name}"
    shutil.copytree("data", "before")
    shutil.copy("dvc.lock", "dvc.lock.before")
    try:
        with edited(reproduced, changes):
            ran, graph = reproduce()
            assert set(ran) == {SNAPSHOT} | with_all_after(first, graph)
            words = re.findall(r"[\w@-]+", re.sub("`.*?`", "", row[1]))
            said = without_splits(words) & without_splits(stage.name for stage in graph)
            assert said == without_splits(first), "docs/parameters.md, 'What runs again', names others"
        if name in UNDONE:
            ran, graph = reproduce()
            assert set(ran) == {SNAPSHOT} | with_all_after(UNDONE[name], graph)
            assert reproduce()[0] == [SNAPSHOT]
    finally:
        shutil.rmtree("data")
        Path("before").rename("data")
        Path("dvc.lock.before").rename("dvc.lock")
