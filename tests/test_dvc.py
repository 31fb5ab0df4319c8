"""What a DVC user types in a clone, with real DVC, the real dvc.yaml and stages that are played."""

import contextlib
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx  # type: ignore[import-untyped]
import pytest
from dvc.repo import Repo
from dvc.stage.run import cmd_run
from ruamel.yaml import YAML

from pipelines import check
from pipelines.flows.graph import stage_name
from tests.faults import repository, results
from tests.flows import toy
from tests.later_keys import gained_keys
from tests.light_dvc import light_dvc, parse_json
from tests.package.small_package import write_small_package
from tests.presets import rendered

ROOT = toy.ROOT
CODE = {
    "decoding code": "convs2s/search/beam_search.py",
    "a comment": "convs2s/model/decoder.py",
    "serving code": "convs2s/serve/app.py",
}
UP_TO_DATE = "Data and pipelines are up to date."

# What is edited, and the stages that `dvc status` names then; all after them run as well.
EDITS: dict[str, tuple[dict[str, Any], str]] = {
    "languages": (
        {"languages": ["de", "en"]},
        "download truecase tokenize filter translate replace evaluate package",
    ),
    "seeds": ({"seeds": [1, 2]}, "train@2 tune@2 translate@2 replace@2 package@2 evaluate"),
    "download.train": ({"download.train": {"sources": []}}, "download@train"),
    "augment.tag": ({"augment.tag": "<bt>"}, "filter"),
    "tokenize.lowercase": (
        {"tokenize.lowercase": True},
        "truecase tokenize translate replace evaluate package",
    ),
    "filter.max_words": ({"filter.max_words": 100}, "filter"),
    "vocabulary.kind": ({"vocabulary.kind": "word"}, "vocabulary"),
    "align.iterations": ({"align.iterations": 4}, "align candidates"),
    "candidates.per_source": ({"candidates.per_source": 9}, "candidates"),
    "model.max_positions": ({"model.max_positions": 99}, "train"),
    "train.dropout": ({"train.dropout": 0.3}, "train package"),
    "train.start_from": ({"train.start_from": "data/start"}, "truecase vocabulary train package"),
    "tune.alphas": ({"tune.alphas": [1.0]}, "tune"),
    "translate.beam_size": ({"translate.beam_size": 2}, "tune translate package"),
    "replace.enabled": ({"replace.enabled": True}, "align replace evaluate package"),
    "evaluate.examples": ({"evaluate.examples": 3}, "evaluate"),
    "package.name": ({"package.name": "mine"}, "package"),
    "run.checkpoint_minutes": ({"run.checkpoint_minutes": 5}, ""),
    "a text": ({"data/own/train.txt": "more\n"}, "data/own.dvc download"),
    "decoding code": ({CODE["decoding code"]: "EDITED = 1\n"}, "augment tune translate package"),
    "a comment": ({CODE["a comment"]: "# edited\n"}, "augment train tune translate package"),
    "serving code": ({CODE["serving code"]: "EDITED = 1\n"}, ""),
}


RUN = ("seeds", "a comment")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone whose first run has ended and is committed; its texts are tracked by DVC."""
    folder = tmp_path_factory.mktemp("dvc") / "clone"
    folder.mkdir()
    for name in ("dvc.yaml", ".dvcignore", ".gitignore", "README.md"):
        shutil.copy(ROOT / name, folder)
    (folder / "params.yaml").write_text(rendered("tatoeba-en-de"), encoding="utf-8")
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"].values()
    code = {
        Path(dep) for stage in stages for dep in stage["deps"] if dep.startswith(("convs2s", "pipelines"))
    }
    files = {path if path.suffix else path / "code.py" for path in code} | {
        Path(path) for path in CODE.values()
    }
    for path in {*files, Path("data/none/.gitkeep"), Path("data/own/train.txt")}:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("# text\n")
    write_small_package(folder / "data").rename(folder / "data/start")
    toy.set_params(folder, {"download.folder": "data/own", "train.start_from": "data/start"})
    toy.run(folder, "git", "init", "--quiet")
    Repo.init(str(folder)).close()
    shutil.copy(ROOT / ".dvc/config", folder / ".dvc/config")
    with (folder / ".gitignore").open("a") as stream:
        stream.write("/ran.txt\n")
    toy.dvc(folder, "add", "data/own", "data/start")
    toy.set_params(folder, {"train.start_from": "data/none"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dvc.stage.run.cmd_run", play)
        with light_dvc():
            toy.dvc(folder, "repro")
    toy.commit(folder)
    return folder


@pytest.fixture
def plain_clone(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the clone."""
    monkeypatch.setattr("dvc.stage.run.cmd_run", play)
    folder = Path(shutil.copytree(finished, tmp_path / "clone", symlinks=True))
    (folder / "ran.txt").unlink()
    return folder


@pytest.fixture
def clone(plain_clone: Path) -> Iterator[Path]:
    """Yield a copy of the clone, in which DVC does less than usual, with the same results."""
    with light_dvc():
        yield plain_clone


def play(stage: Any, dry: bool = False, run_env: object = None) -> None:
    """Write a stage's outputs, which depend on everything that it declares, and add its name to ran.txt."""
    if dry:
        cmd_run(stage, dry=True)
        return
    facts = [stage.cmd, *(str(dep.hash_info) for dep in stage.deps)]  # which DVC has just taken
    number = int(hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:6], 16)
    for out in map(Path, [out.fs_path for out in stage.outs]):
        file = out if out.suffix else out / "content"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"mean": {"bleu": number}}) if out.suffix == ".json" else f"{number}\n")
    with Path(stage.wdir, "ran.txt").open("a") as stream:
        stream.write(f"{stage.addressing}\n")


def ran(folder: Path) -> set[str]:
    """Return the stages that have run since the last call."""
    path = folder / "ran.txt"
    found = set(path.read_text().split()) if path.exists() else set()
    path.unlink(missing_ok=True)
    return found


def edit(folder: Path, changes: dict[str, Any]) -> None:
    """Edit values of params.yaml, and append to files."""
    files = {name for name in changes if (folder / name).is_file()}
    for name in files:
        with (folder / name).open("a") as stream:
            stream.write(changes[name])
    path = folder / "params.yaml"
    content = parse_json(path.read_text(), str(path))
    for name in changes.keys() - files:
        section, _, key = name.rpartition(".")
        (content[section] if section else content)[key] = changes[name]
    path.write_text(json.dumps(content))


@cache
def graph_of(folder: Path) -> Any:
    """Return the graph of stage names, from each stage to those after it."""
    with Repo(str(folder)) as repo:
        edges = repo.index.graph.edges
        return nx.DiGraph([(stage_name(parent), stage_name(child)) for child, parent in edges])


def of_stages(words: str, names: set[str]) -> set[str]:
    """Return the items of these stages, each given as a stage or as one item."""
    return {name for name in names for word in words.split() if word in {name, name.partition("@")[0]}}


def test_after_a_run_all_is_up_to_date(clone: Path) -> None:
    """`dvc status` and `dvc repro` agree on it, so a script can ask; the README is no input of any stage."""
    assert toy.dvc(clone, "status") == toy.dvc(clone, "repro").splitlines()[-1] == UP_TO_DATE
    edit(clone, {"README.md": "more\n"})
    assert toy.dvc(clone, "status") == UP_TO_DATE
    assert ran(clone) == set()


@pytest.mark.parametrize("name", EDITS)
def test_the_table_and_status_name_the_same_stages(name: str, clone: Path, finished: Path) -> None:
    """Users read in docs/parameters.md what an edit costs; here it is made, and `dvc status` is asked."""
    changes, words = EDITS[name]
    row = re.search(
        rf"^\| `?{re.escape(name)}`?[^|]*\|([^|]*)\|$", (ROOT / "docs/parameters.md").read_text(), re.M
    )
    assert row is not None, f"docs/parameters.md, 'What runs again', has no row for {name}"
    assert re.findall(r"[\w@./]+", row[1].replace("nothing", "")) == [
        one for one in words.split() if "/" not in one
    ]
    edit(clone, changes)
    named = of_stages(words, set(graph_of(finished))) | {word for word in words.split() if "@2" in word}
    assert set(json.loads(toy.dvc(clone, "status", "--json"))) == named


@pytest.mark.parametrize(
    "name", [name if name in RUN else pytest.param(name, marks=pytest.mark.slow) for name in EDITS]
)
def test_an_edit_runs_what_status_names(name: str, clone: Path) -> None:
    """A dry run names the same stages; a real one also runs those that read their outputs."""
    changes, words = EDITS[name]
    edit(clone, changes)
    graph = graph_of(clone)
    named = of_stages(words, set(graph))
    if name != "seeds":  # DVC fails then, as the models of the new seed are not there
        dry = set(re.findall(r"Running stage '(\S+)':", toy.dvc(clone, "repro", "--dry")))
        assert dry == {one for one in named if not one.endswith(".dvc")}
    toy.dvc(clone, "repro")
    after = named.union(*(nx.descendants(graph, one) for one in named))
    assert ran(clone) == {one for one in after if not one.endswith(".dvc")}


def test_dvc_names_the_value_that_was_edited(clone: Path) -> None:
    """A user who comes back to a clone sees what was changed, and what it did to the scores."""
    edit(clone, {"translate.beam_size": 2})
    status = json.loads(toy.dvc(clone, "status", "--json"))
    assert status["translate@1"] == [{"changed deps": {"params.yaml": {"translate": "modified"}}}]
    diff = json.loads(toy.dvc(clone, "params", "diff", "--json"))
    assert diff == {"params.yaml": {"translate.beam_size": {"old": 5, "new": 2, "diff": -3}}}
    toy.dvc(clone, "repro")
    diff = json.loads(toy.dvc(clone, "metrics", "diff", "--json"))
    assert {"old", "new", "diff"} == diff["data/evaluation/metrics.json"]["mean.bleu"].keys()
    assert ran(clone) == {"tune@1", "translate@1", "replace@1", "evaluate", "package@1"}
    edit(clone, {"translate.beam_size": 5})
    toy.dvc(clone, "repro")
    assert ran(clone) == set()  # the results of the former value are in the cache
    assert toy.dvc(clone, "status") == UP_TO_DATE


def test_a_single_stage_runs_after_an_edit(clone: Path) -> None:
    """`--single-item` runs it alone, `--downstream` also what reads its outputs, and no other stage."""
    edit(clone, {"translate.beam_size": 2})
    toy.dvc(clone, "repro", "--single-item", "translate@1")
    assert ran(clone) == {"translate@1"}
    edit(clone, {"translate.beam_size": 3})
    toy.dvc(clone, "repro", "--downstream", "translate@1")
    assert ran(clone) == {"translate@1", "replace@1", "evaluate", "package@1"}


def test_a_comment_is_accepted_by_commit(clone: Path) -> None:
    """It changes no result, so no stage need run again: days of training may depend on that."""
    edit(clone, {"convs2s/model/decoder.py": "# a comment\n"})
    toy.dvc(clone, "commit", "--force")
    assert toy.dvc(clone, "status") == UP_TO_DATE


def list_accepted(folder: Path) -> set[str]:
    """Return the stages whose results the check before a run says how to keep; none if it passes."""
    with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            check.main([])
        except SystemExit as end:
            assert end.code == 2
    command = re.search(r"^To keep their results: dvc commit --force (.*)$", err.getvalue(), re.M)
    assert (command is None) == (err.getvalue() == ""), err.getvalue()
    return set(command[1].split()) if command else set()


def test_a_key_that_came_later_is_accepted_by_commit(clone: Path) -> None:
    """Its default changes no result, so the check says how to keep them all. Another value changes some."""
    with gained_keys():
        assert list_accepted(clone) == set()  # params.yaml of an older clone
        edit(clone, {"train.added_key": 0.0, "translate.added_key": 0.0})
        stale = set(json.loads(toy.dvc(clone, "status", "--json")))
        assert stale == {"train@1", "tune@1", "translate@1", "package@1"}
        assert list_accepted(clone) == stale
        toy.dvc(clone, "commit", "--force", *stale)
        assert toy.dvc(clone, "status") == UP_TO_DATE
        toy.dvc(clone, "repro")
        assert list_accepted(clone) == set()
        assert ran(clone) == set()
        edit(clone, {"translate.added_key": 0.1})
        assert list_accepted(clone) == set()
        toy.dvc(clone, "repro")
        assert ran(clone) == {"tune@1", "translate@1", "replace@1", "evaluate", "package@1"}


def test_a_stage_with_other_changes_is_not_accepted(clone: Path) -> None:
    """The check offers to keep a result only if nothing else has changed: what is accepted is not made again.

    A params.yaml that has lost the key is like one that has gained it. A stage or section that is gone is
    another change.
    """
    edit(clone, {"seeds": [1, 2]})
    toy.dvc(clone, "repro")
    with gained_keys():
        edit(clone, {"seeds": [1], "train.added_key": 0.0, "translate.beam_size": 2})
        assert list_accepted(clone) == {"train@1"}
        toy.dvc(clone, "commit", "--force", "train@1")
        content = parse_json((clone / "params.yaml").read_text(), "params.yaml")
        del content["train"]["added_key"]
        (clone / "params.yaml").write_text(json.dumps(content))
        assert list_accepted(clone) == {"train@1"}
        path = clone / "dvc.lock"
        text = path.read_text()
        for name, value in (
            ("train", {**content["train"], "added_key": 0.1}),
            ("train", {**content["train"], "added_key": 0.0, "gone": 1}),
            ("gone", 1),
            ("train.gone", 1),
        ):
            lock = parse_json(text, "dvc.lock")
            lock["stages"]["train@1"]["params"]["params.yaml"] |= {name: value}
            path.write_text(json.dumps(lock))
            assert list_accepted(clone) == set()


def test_another_clone_pulls_texts_and_results(clone: Path, tmp_path: Path) -> None:
    """It has the results without running a stage, also after `gc --workspace`, which keeps what is in use."""
    toy.dvc(clone, "remote", "add", "--quiet", "--default", "store", str(tmp_path / "store"))
    toy.dvc(clone, "gc", "--workspace", "--force")
    toy.dvc(clone, "push")
    toy.commit(clone)
    toy.run(tmp_path, "git", "clone", "--quiet", str(clone), "theirs")
    theirs = tmp_path / "theirs"
    toy.dvc(theirs, "pull")
    assert toy.dvc(theirs, "status") == UP_TO_DATE
    assert (theirs / "data/own/train.txt").read_text() == "# text\n"
    toy.dvc(theirs, "repro")
    assert ran(theirs) == set()


def shown(folder: Path) -> dict[str, int]:
    """Return filter.max_words by name of each experiment that has ended."""
    table = json.loads(toy.dvc(folder, "exp", "show", "--json"))
    runs = [one["revs"][0] for row in table for one in row["experiments"] or ()]
    return {one["name"]: one["data"]["params"]["params.yaml"]["data"]["filter"]["max_words"] for one in runs}


def test_experiments_run_in_the_workspace(clone: Path) -> None:
    """Users run, compare and take them over with these commands of DVC, as the pages say."""
    toy.dvc(clone, "exp", "run", "--name", "here", "--set-param", "filter.max_words=3", "filter")
    assert shown(clone) == {"here": 3}
    toy.run(clone, "git", "checkout", "--quiet", ".")
    toy.dvc(clone, "exp", "apply", "here")
    assert "max_words: 3 " in (clone / "params.yaml").read_text()
    assert json.loads(toy.dvc(clone, "status", "--json", "filter")) == {}


FILTERED = ("train/content", "valid/content", "removed.json", "rules.csv", "report.json", "lengths.csv")


@pytest.mark.slow
def test_experiments_run_in_copies(plain_clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--temp` and `--queue` make one from git, which does not have the user's texts; DVC tracks those.

    DVC runs them in processes of its own, for which a script plays the stage filter; no other has to run.
    """
    programs = plain_clone.with_name("bin")
    files = " ".join(f"data/filtered/{name}" for name in FILTERED)
    script = (
        f"mkdir -p data/filtered/train data/filtered/valid; for name in {files}; do echo {{}} > $name; done"
    )
    toy.write_program(programs / "python", script)
    monkeypatch.setenv("PATH", f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin")
    for way, words in (("--temp", 4), ("--queue", 5)):
        options = (way, "--name", way[2:], "--set-param", f"filter.max_words={words}", "filter")
        toy.run(plain_clone, "dvc", "exp", "run", *options)
    toy.run(plain_clone, "dvc", "exp", "run", "--run-all")
    assert shown(plain_clone) == {"temp": 4, "queue": 5}


def test_no_command_has_text_of_params_yaml() -> None:
    """DVC reads the file before anything checks it, so that any key may have any text, even a number's.

    Only what dvc.yaml itself lists may be put into a command: the splits of a matrix.
    """
    for name, stage in YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"].items():
        own = {
            f"item.{key}"
            for key, values in stage.get("matrix", {}).items()
            if isinstance(values, list) and not re.search(r"\$\{", str(values))
        }
        assert set(re.findall(r"\$\{(.*?)\}", stage["cmd"])) <= own, name
        assert re.findall(r"[`\\;&|<>]|\$(?!\{|DVC_STAGE\b)", stage["cmd"]) == [], name
        assert stage["cmd"].count("$DVC_STAGE") == stage["cmd"].count('"$DVC_STAGE"'), name


def attack(name: str) -> str:
    """Return a text that makes a file if a shell reads it, in quotes of either kind or without."""
    return f"$(touch PWNED.{name})'$(touch PWNED.{name})'"


def attacked(value: Any, name: str = "") -> Any:
    """Return params.yaml with an attack in each of its values; an empty list gets one, too."""
    if isinstance(value, dict):
        return {key: attacked(one, f"{name}.{key}".lstrip(".")) for key, one in value.items()}
    if isinstance(value, list):
        return [attacked(one, f"{name}.{number}") for number, one in enumerate(value or [None])]
    return attack(name)


def test_no_value_of_params_yaml_reaches_a_shell(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here every value is an attack, and every stage runs its command in a shell, without a check before it.

    The stage `control`, which puts a value into its command, shows that the attacks work. What DVC records
    is the path as it is written.
    """
    path = clone / "params.yaml"
    values = attacked(parse_json(path.read_text(), str(path)))
    path.write_text(json.dumps(values))
    folders = [values["download"]["folder"], values["train"]["start_from"]]
    folders += [values["augment"][key] for key in ("models", "text")]
    for folder in folders:
        (clone / folder).mkdir()
    content = YAML(typ="safe").load(clone / "dvc.yaml")
    content["stages"]["control"] = {"cmd": 'true "${package.name}"', "outs": ["data/control"]}
    (clone / "dvc.yaml").write_text(json.dumps(content))
    toy.write_program(clone / "bin" / "python", "exit 0")
    monkeypatch.setenv("PATH", f"{clone / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("SHELL", "/bin/sh")

    def run_and_play(stage: Any, dry: bool = False, run_env: Any = None) -> None:
        cmd_run(stage, dry, run_env)
        play(stage, dry)

    monkeypatch.setattr("dvc.stage.run.cmd_run", run_and_play)
    toy.dvc(clone, "repro")
    executed = (clone / "ran.txt").read_text().splitlines()
    with Repo(str(clone)) as repo:
        assert sorted(executed) == sorted(stage_name(stage) for stage in repo.index.stages if stage.cmd)
    assert f"train@{attack('seeds.0')}" in executed
    assert f"ensemble@{attack('evaluate.ensembles.0')}" in executed
    assert {path.name for path in clone.rglob("PWNED*")} == {"PWNED.package.name"}
    recorded = parse_json((clone / "dvc.lock").read_text(), "dvc.lock")["stages"]
    for name, declared in (
        ("augment", folders[2:]),
        ("truecase", folders[1:2]),
        ("vocabulary", folders[1:2]),
    ):
        assert set(declared) < {dep["path"] for dep in recorded[name]["deps"]}


@pytest.mark.slow
def test_any_name_of_a_folder_may_be_used(tmp_path: Path) -> None:
    """A shell would run or change these names; each stage must read the folder that DVC records.

    Training starts from one model, and the same model translates more text, so the whole DAG has such names.
    """
    folder = repository.make_base(tmp_path)
    names = {"start": " $(touch PWNED) ~ model ", "models": "$HOME", "own": '`touch PWNED`";touch PWNED"'}
    for name in ("start", "models"):
        shutil.copytree(folder / "data/models/1", folder / names[name])
    (folder / "data/own").rename(folder / names["own"])
    yaml = YAML(typ="safe")
    path = folder / "params.yaml"
    params = yaml.load(path)
    params["download"] |= {
        "folder": names["own"],
        "valid": {"sources": params["download"]["test"]["sources"]},
    }
    params["filter"]["valid_every"] = None
    params["train"]["start_from"] = names["start"]
    params["augment"]["models"] = names["models"]
    params["package"]["name"] = params["augment"]["tag"] = "$(touch${IFS}PWNED)"
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(params, stream)
    env = {"PYTHONPATH": str(ROOT), "SHELL": "/bin/sh", "HOME": str(tmp_path), "DVC_NO_ANALYTICS": "1"}
    env["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    command = [sys.executable, "-m", "dvc", "repro"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert list(tmp_path.rglob("PWNED*")) == []
    stages = results.lock(folder)
    for stage, key, name in (
        ("download@train", "download.folder", "own"),
        ("augment", "augment.models", "models"),
        ("truecase", "train.start_from", "start"),
        ("vocabulary", "train.start_from", "start"),
    ):
        (dep,) = (dep for dep in stages[stage]["deps"] if dep["path"] == names[name])
        assert stages[stage]["params"]["params.yaml"][key] == dep["path"]
        assert dep["nfiles"] == len(list((folder / names[name]).iterdir()))
    assert (folder / "data/raw/augmented/target.txt").stat().st_size > 0
    vocabularies = [path / "source.tsv" for path in (folder / "data/vocabulary", folder / names["start"])]
    assert vocabularies[0].read_bytes() == vocabularies[1].read_bytes()
