"""params.yaml is data: it is checked before anything uses it, and a shell never runs text from it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dvc.exceptions import DvcException
from dvc.repo import Repo

from convs2s.config.load import flatten_values
from convs2s.config.params import Params
from pipelines.check import list_doubts, main
from pipelines.later_keys import list_items
from pipelines.stages import __main__ as runner
from tests.flows import toy
from tests.presets import change_preset, params_of

ROOT = Path(__file__).parent.parent
ATTACK = "1; touch F #"
FAULT = f"params.yaml is invalid:\n  seeds.0: expected an integer, found '{ATTACK}'"


def write(folder: Path, changes: dict[str, Any]) -> None:
    """Write the default params.yaml with changes, by dotted name, and the folder for local texts."""
    content = change_preset("tatoeba-en-de", changes)
    (folder / content["download"]["folder"]).mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML


@pytest.fixture
def attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a copy of the repository with a command as a seed; programs in its bin come first."""
    for name in ("convs2s", "pipelines", "experiments", "dvc.yaml", "Makefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    write(tmp_path, {"seeds": [ATTACK]})
    Repo.init(str(tmp_path), no_scm=True).close()
    monkeypatch.chdir(tmp_path)
    paths = f"{tmp_path / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", paths)
    return tmp_path


def test_dvc_repro_stops_at_the_first_stage(attacked: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It checks the whole file, although it reads only its own sections."""
    with (
        Repo(str(attacked)) as repo,
        pytest.raises(DvcException, match="failed to reproduce 'download@train'"),
    ):
        repo.reproduce()
    assert f"download: error: {FAULT}" in capfd.readouterr().err
    assert not list(attacked.rglob("F"))


def test_make_repro_checks_before_it_starts_dvc(attacked: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The fault is shown at once. A script in place of DVC would leave a file."""
    toy.write_program(attacked / "bin" / "dvc", "touch F")
    assert subprocess.run(["make", "--old-file=install", "repro"], check=False).returncode != 0
    assert f"check: error: {FAULT}" in capfd.readouterr().err
    assert not list(attacked.rglob("F"))


def test_every_stage_checks_the_models_that_params_yaml_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dvc repro` alone does not run the check; a model that does not fit would cost a training.

    Any stage can be started on its own, so even one that reads nothing from params.yaml checks the file.
    """
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"train.start_from": "data/nowhere"})
    with pytest.raises(FileNotFoundError, match=r"^train\.start_from: expected a model folder"):
        runner.start("encode", [])


def test_a_matrix_makes_items_of_a_stage() -> None:
    """They are named as in DVC, by the values of all axes. An axis from params.yaml may have no values."""
    params = {"seeds": [1, 2], "evaluate": {"ensembles": []}}
    stages = {
        "filter": {},
        "train": {"matrix": {"seed": "${seeds}"}},
        "ensemble": {"matrix": {"member": "${evaluate.ensembles}"}},
        "try": {"matrix": {"split": ["valid", "test"], "seed": "${seeds}"}},
    }
    pairs = ["try@valid-1", "try@valid-2", "try@test-1", "try@test-2"]
    assert list(list_items(stages, params)) == ["filter", "train@1", "train@2", *pairs]


def test_what_reaches_beyond_the_machine_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By nature, a launcher is a command that runs: no check can tell a stranger's from yours."""
    write(tmp_path, {"run.launcher": "touch F\x1b[2J;", "run.checkpoints": "ssh://elsewhere"})
    monkeypatch.chdir(tmp_path)
    main([])
    assert capsys.readouterr().out == (
        "params.yaml: OK\nrun.launcher: training runs this command as you: touch F\ufffd[2J;\n"
        "run.checkpoints: training copies its weights there: ssh://elsewhere\n"
    )


def test_an_unknown_language_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be a typo, but a language without a code can be translated, too."""
    write(tmp_path, {"languages": ["en", "xf"]})
    monkeypatch.chdir(tmp_path)
    main([])
    out, err = capsys.readouterr()
    assert out == "params.yaml: OK\n"
    assert err.startswith("warning: language xf: expected an ISO 639 code")


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines of `--list`, for a file with another dropout than base.yaml."""
    write(tmp_path, {"train.dropout": 0.25})
    monkeypatch.chdir(tmp_path)
    main(["--list"])
    return capsys.readouterr().out.splitlines()


def test_the_list_has_every_key_with_its_meaning(listed: list[str]) -> None:
    """It is where users look a key up: a line with the value, then one with what it means."""
    keys = flatten_values(params_of("tatoeba-en-de").model_dump())
    assert {line.split(":")[0] for line in listed[::2]} == set(keys)
    assert all(line.startswith("    ") and line.strip() for line in listed[1::2])
    assert listed[listed.index("translate.n_best: 1") + 1].startswith("    Hypotheses written per sentence")


def test_the_list_shows_where_a_value_differs_from_the_base(listed: list[str]) -> None:
    """Whoever compares two runs sees at once what is not the default."""
    assert "train.dropout: 0.25  (base.yaml: 0.1)" in listed


DOUBTS: list[tuple[dict[str, Any], str]] = [
    ({"languages": ["en", "en"]}, "languages: source and target are both en; expected two languages, unless"),
    (
        {"train.max_tokens": 5},
        "train.max_tokens: most sentences have more than 5 tokens, so each is processed",
    ),
    (
        {"train.max_tokens": 10**8},
        "train.max_tokens: no memory holds 100,000,000 tokens at once, so that only",
    ),
    ({"train.workers": 4000}, "train.workers: 4000 processes share "),
    ({"train.min_learning_rate": 0.1}, "train.min_learning_rate: 0.1 is above train.learning_rate, 0.01, so"),
]


@pytest.mark.parametrize(("changes", "message"), DOUBTS, ids=[next(iter(doubt)) for doubt, _ in DOUBTS])
def test_what_is_allowed_but_hardly_meant_is_a_warning(changes: dict[str, Any], message: str) -> None:
    """It would cost a training to find out. It is not refused, as somebody may mean it."""
    (doubt,) = list_doubts(Params.model_validate(change_preset("tatoeba-en-de", changes)))
    assert doubt.startswith(message)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"languages": ["en", "en"], "evaluate.rouge": "gigaword"},
        {"train.max_tokens": 10**8, "train.batch_by": "sentences"},
        {"train.workers": 4000, "run.launcher": "srun"},
    ],
)
def test_what_may_well_be_meant_is_no_warning(changes: dict[str, Any]) -> None:
    """A summary has the language of its text; workers of another machine have its cores."""
    assert not list(list_doubts(Params.model_validate(change_preset("tatoeba-en-de", changes))))


@pytest.mark.parametrize("command", ["check", "preset"])
def test_outside_of_the_environment_the_command_says_so(command: str) -> None:
    """People forget to activate .venv, and a traceback names one of its packages only."""
    program = [sys.executable, "-I", "-S", "-c"]  # without the packages of the environment
    start = f"import sys, runpy; sys.path.insert(0, {str(ROOT)!r}); runpy.run_module('pipelines.{command}')"
    done = subprocess.run([*program, start], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "lacks packages of this project (pydantic, ruamel, tqdm, dvc)" in done.stderr
    assert "source .venv/bin/activate" in done.stderr and "Traceback" not in done.stderr
