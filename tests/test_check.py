"""params.yaml is data: it is checked before anything uses it, and a shell never runs text from it."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dvc.exceptions import DvcException
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.config.load import load_params
from convs2s.config.params import Params
from pipelines.check import check, main
from pipelines.flows import machine
from pipelines.stages import __main__ as runner
from tests.presets import content_of, params_of

ROOT = Path(__file__).parent.parent
ATTACK = "1; touch F #"


def write(folder: Path, **train: Any) -> Path:
    """Write the default params.yaml with changes in its train section, and the folder for local texts."""
    content = content_of("tatoeba-en-de")
    content["train"].update(train)
    (folder / content["download"]["folder"]).mkdir(parents=True, exist_ok=True)
    with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(content, stream)
    return folder / "params.yaml"


@pytest.fixture
def attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the repository, with links to its code, whose params.yaml has a command as a seed."""
    for name in ("convs2s", "pipelines", "experiments"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("dvc.yaml", "Makefile"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    write(tmp_path, seeds=[ATTACK])
    Repo.init(str(tmp_path), no_scm=True).close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def is_unharmed(folder: Path) -> bool:
    return not list(folder.rglob("F"))


def test_dvc_repro_stops_at_the_first_stage_that_runs(
    attacked: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The snapshot cannot be taken."""
    with Repo(str(attacked)) as repo, pytest.raises(DvcException, match="failed to reproduce 'snapshot'"):
        repo.reproduce()
    assert (
        f"snapshot: error: params.yaml is invalid:\n  train.seeds.0: expected an integer, found '{ATTACK}'"
        in capfd.readouterr().err
    )
    assert is_unharmed(attacked)


def test_a_single_stage_gets_the_seed_as_one_word(attacked: Path) -> None:
    """`dvc repro --single-item` skips the first stage, so each command itself must be safe in a shell."""
    said, python = attacked / "said", attacked / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {said}\n')
    python.chmod(0o755)
    with Repo(str(attacked)) as repo:
        commands = [stage.cmd for stage in repo.index.stages if ATTACK in stage.name]
    assert len(commands) >= 5  # train, tune, translate, replace, package, and later ones
    for command in commands:
        subprocess.run(command, shell=True, check=True, env={"PATH": f"{python.parent}:/usr/bin:/bin"})
        assert f"--seed\n{ATTACK}\n" in said.read_text()
        said.unlink()
    assert is_unharmed(attacked)


def test_a_seed_that_climbs_out_of_its_folder_deletes_nothing(attacked: Path) -> None:
    """Several stages would then share an output path, which DVC refuses before it runs any."""
    write(attacked, seeds=["../../precious"])
    thesis = attacked / "precious" / "model" / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.touch()
    with Repo(str(attacked)) as repo, pytest.raises(DvcException, match="overlap"):
        repo.reproduce()
    assert thesis.is_file()


@pytest.mark.parametrize("seeds", [[{ATTACK: 1}], [[ATTACK]]])
def test_dvc_refuses_a_seed_that_it_would_not_quote(attacked: Path, seeds: list[Any]) -> None:
    """DVC quotes words, but not the keys of a mapping, so these must not reach a command."""
    write(attacked, seeds=seeds)
    with Repo(str(attacked)) as repo, pytest.raises(DvcException, match="Cannot interpolate data of type"):
        repo.reproduce()


def test_make_repro_does_not_start_dvc(attacked: Path) -> None:
    """The check comes first, so the message names the key even where DVC itself would fail."""
    started = attacked / "bin" / "dvc"
    started.parent.mkdir()
    started.write_text("#!/bin/sh\ntouch dvc-was-started\n")
    started.chmod(0o755)
    path = f"{started.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "--old-file=install", "repro"],
        env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert (
        f"check: error: params.yaml is invalid:\n  train.seeds.0: expected an integer, found '{ATTACK}'"
        in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert not (attacked / "dvc-was-started").exists()
    assert is_unharmed(attacked)


@pytest.mark.parametrize("stage", ["encode", "train"])
def test_every_stage_checks_the_file(attacked: Path, stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Any stage can be started on its own, so even one that reads nothing from params.yaml checks it."""
    with pytest.raises(SystemExit) as ended:
        runner.main([stage, "--seed", ATTACK, "--out", "{seed}"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"{stage}: error: params.yaml is invalid:")


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (3, "train.seeds: expected a list, found 3"),
        ([], "train.seeds: expected at least 1 item(s), found []"),
        (None, "train.seeds: expected a list, found None"),
        ({"a": 1}, "train.seeds: expected a list, found {'a': 1}"),
        ([True], "train.seeds.0: expected an integer, found True"),
    ],
)
def test_seeds_of_another_type_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seeds: Any,
    message: str,
) -> None:
    """DVC reports some of these as an unexpected error, and accepts others."""
    write(tmp_path, seeds=seeds)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main([])
    assert message in capsys.readouterr().err


def test_make_flow_starts_neither_server_nor_run(attacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A faulty params.yaml must be reported before anything starts."""
    monkeypatch.setattr(machine, "ROOT", attacked)
    monkeypatch.setattr(machine, "run", lambda *_: pytest.fail("the run has started"))
    for command in (["run"], ["sweep", "table5"]):
        with pytest.raises(ValueError, match=r"params\.yaml is invalid"):
            machine.execute(machine.parser().parse_args(command))


def test_a_missing_folder_of_texts_is_named(tmp_path: Path) -> None:
    """DVC would only say that data are missing."""
    path = write(tmp_path)
    (tmp_path / "data" / "tatoeba-en-de").rmdir()
    with pytest.raises(
        FileNotFoundError,
        match=r"download\.folder: expected .*, found data/tatoeba-en-de, which is not a folder",
    ):
        check(path)


def test_every_key_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--list` shows its value, the value in base.yaml if that differs, and its meaning."""
    write(tmp_path, dropout=0.25)
    monkeypatch.chdir(tmp_path)
    main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert "train.dropout: 0.25  (base.yaml: 0.1)" in lines
    assert lines[lines.index("translate.n_best: 1") + 1].startswith("    Hypotheses written per sentence")
    keys = [line.split(":")[0] for line in lines[::2]]
    sections = Params.model_fields.items()
    assert keys == [f"{name}.{key}" for name, section in sections for key in section.annotation.model_fields]  # type: ignore[union-attr]
    assert json.loads(next(line for line in lines if line.startswith("train.seeds")).split(": ")[1]) == [1]


def test_a_valid_file_is_reported_as_ok(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Silence would not tell users that the file was checked."""
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    main([])
    assert capsys.readouterr().out == "params.yaml: OK\n"
    assert load_params() == params_of("tatoeba-en-de")
    assert shlex.quote(ATTACK) != ATTACK  # otherwise the tests above would prove nothing
