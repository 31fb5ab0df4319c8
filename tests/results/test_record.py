"""Recording a run: only what is certain is written; anything else is refused with the reason."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from convs2s.train.cost import file_name
from pipelines.results.commands import of_preset
from pipelines.results.costs import cost_of, speed_of
from pipelines.results.record import main
from tests.presets import rendered
from tests.results.made import SIGNATURES, row, run

ROOT = Path(__file__).parents[2]
IDENTITY = {f"GIT_{role}_{part}": "toy" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
# The stages after data preparation: their outputs depend on the parameters alone.
PIPELINE = """
stages:
  train:
    cmd: PYTHON convs2s/play.py
    deps: [convs2s/play.py]
    params: [train, model]
    outs: [data/trained, data/evaluation]
"""
PLAYER = """
import json, pathlib
from ruamel.yaml import YAML
params = YAML(typ="safe", pure=True).load(open("params.yaml"))
train, positions = params["train"], params["model"]["source_positions"]
made = json.load(open("made.json"))
evaluation = pathlib.Path("data/evaluation")
evaluation.mkdir(parents=True)
for name in ("metrics", "signatures", "test_set"):
    (evaluation / (name + ".json")).write_text(json.dumps(made[name]))
for seed in train["seeds"]:
    model = pathlib.Path("data/trained", str(seed), "model")
    model.mkdir(parents=True)
    (model / "weights.safetensors").write_text(f"{seed} {train['dropout']} {positions}")
    (model.parent / "metrics.json").write_text(json.dumps({"validation_perplexity": 6.5, "epochs": 3}))
"""
TEST_SET = {"name": "test_2016_flickr", "lines": 1000, "sha256": "ab" * 32}
SESSION = {"device": "NVIDIA H200", "unit": "GPU", "count": 2, "torch": "2.13.0", "first": 0, "last": 9}


def call(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def reproduce(folder: Path) -> None:
    with contextlib.chdir(folder), Repo() as repo:
        repo.reproduce(["train"])


@pytest.fixture(scope="module", autouse=True)
def _identity() -> Iterator[None]:
    """Give git an identity, which a test machine may lack."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in IDENTITY.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with a finished run: preset multi30k-en-de, two seeds, one other value changed."""
    repo = tmp_path_factory.mktemp("finished")
    for name in ("presets", "tables"):
        shutil.copytree(ROOT / "experiments" / name, repo / "experiments" / name)
    for name in ("paper.yaml", "base.yaml"):
        shutil.copy(ROOT / "experiments" / name, repo / "experiments")
    (repo / "convs2s").mkdir()
    (repo / "convs2s" / "play.py").write_text(PLAYER)
    (repo / "dvc.yaml").write_text(PIPELINE.replace("PYTHON", sys.executable))
    (repo / ".gitignore").write_text("/data\n")
    (repo / "experiments" / "records").mkdir()
    (repo / "experiments" / "records" / ".keep").touch()
    metrics = run("generated", 36.0, 37.0, ensemble=38.5)["metrics"]
    made = {"metrics": metrics, "signatures": SIGNATURES, "test_set": TEST_SET}
    (repo / "made.json").write_text(json.dumps(made))
    edit(repo, {"seeds": [1, 2], "dropout": 0.3}, preset="multi30k-en-de")
    call(repo, "git", "init", "--quiet", "--initial-branch", "main")
    Repo.init(str(repo)).close()
    (repo / "docs").mkdir()
    (repo / "docs" / "results.md").write_text("made before")
    call(repo, "git", "add", "--all")
    call(repo, "git", "commit", "--quiet", "--message", "toy")
    reproduce(repo)
    for seed, seconds in (("1", 3600.0), ("2", 1800.0)):
        leave_cost(repo, seed, seconds)
    return repo


def work_in_copy(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy, which tests may change, and make it the working directory."""
    copy = Path(shutil.copytree(original, tmp_path / "repo", symlinks=True))
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def repo(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of `finished` to work in."""
    return work_in_copy(finished, tmp_path, monkeypatch)


def edit(
    repo: Path,
    train: dict[str, Any],
    preset: str | None = None,
    name: str | None = None,
    model: dict[str, Any] | None = None,
) -> None:
    """Write params.yaml with some values under `train` and `model` changed."""
    yaml, path = YAML(), repo / "params.yaml"
    content = yaml.load(path.read_text(encoding="utf-8") if preset is None else rendered(preset))
    content["train"].update(train)
    content["model"].update(model or {})
    content["download"]["folder"] = "somewhere/on/this/machine"
    if name is not None:
        content["package"]["name"] = name
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(content, stream)


def leave_cost(repo: Path, seed: str, seconds: float, old: bool = False) -> None:
    session = SESSION | {"seconds": seconds}
    if not old:
        session |= {"target_tokens": int(300 * seconds), "training_seconds": seconds / 2}
    weights = repo / "data" / "trained" / seed / "model" / "weights.safetensors"
    folder = repo / "data" / "checkpoints" / seed / "costs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file_name(weights)).write_text(json.dumps([session]))


def recorded(repo: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((repo / "experiments" / "records" / f"{name}.json").read_text(encoding="utf-8")))


def test_a_run_is_recorded_with_all_that_it_rests_on(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record has preset, parameters, commit, hardware, hours, scores, and no path of this machine."""
    assert main(["multi30k-3"]) == 0, capsys.readouterr().err
    found = recorded(repo, "multi30k-3")
    assert found["kind"] == "run"
    changed = {"train.dropout": 0.3, "train.seeds": [1, 2]}
    assert (found["preset"], found["params"]) == ("multi30k-en-de", of_preset("multi30k-en-de") | changed)
    assert found["commit"] == call(repo, "git", "rev-parse", "HEAD")
    assert found["cost"] == {
        "hardware": ["2 x NVIDIA H200"], "hours": {"GPU": 3.0}, "torch": ["2.13.0"],
        "target_tokens_per_second": 600.0,
    }  # fmt: skip
    assert found["test_set"] == f"test_2016_flickr: 1,000 lines, sha256 {'ab' * 32}"
    assert found["metrics"]["ensemble"]["bleu"] == 38.5
    assert found["perplexities"] == {"1": 6.5, "2": 6.5}
    assert found["signatures"] == SIGNATURES
    assert "somewhere" not in json.dumps(found)
    assert (
        "[multi30k-3](../experiments/records/multi30k-3.json)" in (repo / "docs" / "results.md").read_text()
    )
    command = 'make preset NAME=multi30k-en-de SET="train.seeds=[1,2] train.dropout=0.3" && make repro'
    assert f"To reproduce it: {command}\nNext: git add experiments docs\n" in capsys.readouterr().out
    assert f"`{command}`" in (repo / "docs" / "results.md").read_text()


def test_hours_are_left_out_when_one_training_has_none(repo: Path) -> None:
    """A partial sum would look like the total."""
    shutil.rmtree(repo / "data" / "checkpoints" / "2")
    assert main(["one"]) == 0
    assert recorded(repo, "one")["cost"] is None


def test_speed_is_left_out_when_one_training_has_none(repo: Path) -> None:
    """A training from before tokens were counted has hours, but no speed."""
    leave_cost(repo, "2", 1800.0, old=True)
    assert main(["one"]) == 0
    cost = recorded(repo, "one")["cost"]
    assert (cost["hours"], cost["target_tokens_per_second"]) == ({"GPU": 3.0}, None)


def test_the_speed_of_a_workspace_is_that_of_its_trainings(repo: Path, tmp_path: Path) -> None:
    """A training may have run in another row's copy, and DVC then restored its outputs here."""
    other = tmp_path / "other"
    shutil.copytree(repo / "data" / "checkpoints" / "2", other / "data" / "checkpoints" / "2")
    shutil.rmtree(repo / "data" / "checkpoints" / "2")
    assert speed_of(repo, [other]) == 600.0
    assert cost_of([repo, repo], [repo, other]) == cost_of([repo], [repo, other]), (
        "a shared training counts once"
    )
    assert speed_of(repo, []) is None
    (repo / "data" / "trained" / "1" / "model" / "weights.safetensors").unlink()
    assert speed_of(repo, [other]) is None


def written(repo: Path) -> dict[str, str]:
    files = [*(repo / "experiments" / "records").iterdir(), repo / "docs" / "results.md"]
    return {path.name: path.read_text() for path in files}


def refused(repo: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the message of a refusal; check that it writes nothing."""
    before = written(repo)
    assert main(arguments) == 1
    assert written(repo) == before
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["evaluation/metrics.json", "evaluation/test_set.json", "trained/2/model/weights.safetensors"]
)
def test_missing_outputs_are_named(repo: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The message has the command that makes them."""
    (repo / "data" / name).unlink()
    message = refused(repo, capsys, "one")
    assert message.startswith(f"data/{name} does not exist")
    assert "run dvc repro, which makes" in message


def test_results_of_other_parameters_are_refused(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """params.yaml was edited after the run: scores of the old values would be recorded for the new ones."""
    edit(repo, {"dropout": 0.1})
    assert "not up to date with params.yaml, code and data: train. Run dvc repro" in refused(
        repo, capsys, "one"
    )


@pytest.mark.parametrize(
    "name",
    ["convs2s/play.py", "convs2s/new.py", "experiments/presets/generated.yaml", "experiments/base.yaml"],
)
def test_uncommitted_code_is_refused(repo: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Code counts whether changed or new; text files next to it do not matter."""
    (repo / "NOTES.md").write_text("x")
    with (repo / name).open("a") as stream:
        stream.write("# edited\n")
    message = refused(repo, capsys, "one")
    assert f"Code differs from commit {call(repo, 'git', 'rev-parse', 'HEAD')[:9]}: {name}. Wanted" in message
    assert "git commit" in message


def test_no_git_no_record(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without git there is no commit to record."""
    shutil.rmtree(repo / ".git")
    assert "git rev-parse HEAD failed in . with status 128: " in refused(repo, capsys, "one")


def test_parameters_of_no_preset_are_refused(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody could repeat such a run."""
    edit(repo, {}, name="mine")
    message = refused(repo, capsys, "one")
    assert "package.name: found 'mine', which no preset has" in message
    assert "'multi30k-en-de'" in message


def test_a_run_without_a_place_on_the_page_is_refused(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record that the page cannot show must not be written."""
    edit(repo, {"seeds": [1, 2], "dropout": 0.3}, preset="own-data")
    reproduce(repo)
    assert "experiments/records/one.json: preset: found 'own-data'" in refused(repo, capsys, "one")


def test_metrics_of_another_form_are_refused(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record is checked before it is written, so that the page can always be made."""
    made = json.loads((repo / "made.json").read_text())
    made["metrics"]["seeds"]["1"] = {"bleu": "high"}
    (repo / "made.json").write_text(json.dumps(made))
    edit(repo, {"dropout": 0.4})
    reproduce(repo)
    assert "one.json has 1 fault(s):\n  metrics.seeds.1.bleu: found 'high'" in refused(repo, capsys, "one")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["A b"], "NAME: found 'A b'; wanted lowercase letters"),
        (["one", "--table", "table9"], "--table: found 'table9'; wanted one of table4, table5, figure2"),
        (["one", "--table", "table3"], "--table: found 'table3'; wanted one of table4, table5, figure2"),
        (["one", "--table", "table4"], "data/sweeps/table4.csv does not exist: make sweep TABLE=table4 wr"),
    ],
)
def test_wrong_arguments_are_refused(
    repo: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """The message says what was wanted."""
    assert message in refused(repo, capsys, *arguments)


ROWS = {"ConvS2S": True, "-source position": False}


@pytest.fixture(scope="module")
def swept(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the repository after a sweep over Table 4, two of whose rows have results."""
    repo = Path(shutil.copytree(finished, tmp_path_factory.mktemp("swept") / "repo", symlinks=True))
    for positions in ROWS.values():
        edit(repo, {"max_epochs": 7}, model={"source_positions": positions})
        reproduce(repo)
        leave_cost(repo, "1", 3600.0)
        leave_cost(repo, "2", 900.0)
        with contextlib.chdir(repo), Repo() as saved:
            saved.experiments.save(name=f"table4-{positions}")
    (repo / "data" / "sweeps").mkdir()
    (repo / "data" / "sweeps" / "table4.csv").write_text(
        "experiment,row,failed,mean.bleu_tokenized,1.validation_perplexity,target_tokens_per_second\n"
        "table4-True,ConvS2S,,36.5,6.25,5400.5\ntable4-x,-target position,train@1 ended with status 1,,,\n"
        "table4-False,-source position,,36.0,,\n"
    )
    edit(repo, {"max_epochs": 99}, model={"source_positions": True})
    return repo


@pytest.fixture
def sweep(swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of `swept` to work in."""
    return work_in_copy(swept, tmp_path, monkeypatch)


SWEEP = ["table4-multi30k", "--table", "table4"]


def test_a_sweep_is_recorded_with_what_its_experiments_rest_on(sweep: Path) -> None:
    """A record has the sweep's initial parameters, one commit, one test set, and the total hours."""
    assert main(SWEEP) == 0
    found = recorded(sweep, "table4-multi30k")
    assert (found["kind"], found["table"], found["preset"]) == ("sweep", "table4", "multi30k-en-de")
    # Values that all rows share are recorded; those that rows set themselves come from params.yaml.
    changed = {"train.dropout": 0.3, "train.seeds": [1, 2], "train.max_epochs": 7}
    assert found["params"] == of_preset("multi30k-en-de") | changed
    assert found["cost"]["hours"] == {"GPU": 5.0}
    assert found["test_set"].startswith("test_2016_flickr: 1,000 lines")
    assert found["signatures"] == {"bleu": SIGNATURES["bleu_tokenized"]}
    first, second, failed, _ = found["rows"]
    assert first == row("ConvS2S", bleu=36.5, perplexity=6.25, target_tokens_per_second=5400.5)
    assert (second["row"], second["bleu"], second["perplexity"], second["seeds"]) == (
        "-source position", 36.0, None, 0,
    )  # fmt: skip
    assert (failed["row"], failed["bleu"]) == ("-target position", None)
    picture = sweep / "docs" / "pictures" / "table4-multi30k.png"
    assert matplotlib.image.imread(picture).std() > 0.01


def test_rows_of_other_parameters_are_refused(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row may have run before params.yaml was edited: the sweep's command would not repeat it."""
    csv = sweep / "data" / "sweeps" / "table4.csv"
    csv.write_text("experiment,row\ntable4-True,ConvS2S\ntable4-True,-source position\n")
    message = refused(sweep, capsys, *SWEEP)
    assert "row -source position: params.model.source_positions not as in its table" in message


def test_a_sweep_of_unknown_origin_is_refused(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its experiments no longer exist, come from other code, or match no row of the table."""
    table = sweep / "data" / "sweeps" / "table4.csv"
    table.write_text("experiment,row\ntable4-never,ConvS2S\n")
    assert "there is no experiment table4-never; wanted one" in refused(sweep, capsys, *SWEEP)
    table.write_text("experiment,row\ntable5-a,1\n")
    assert "the experiments have the row(s) '1'; wanted those of Table 4" in refused(sweep, capsys, *SWEEP)
    table.write_text("experiment,row,failed\ntable4-True,ConvS2S,train@1 ended with status 1\n")
    assert "all experiments failed; wanted one that did not" in refused(sweep, capsys, *SWEEP)
    (sweep / "convs2s" / "new.py").write_text("x = 1\n")
    call(sweep, "git", "add", "convs2s")
    call(sweep, "git", "commit", "--quiet", "--message", "new code")
    table.write_text("experiment,row\ntable4-True,ConvS2S\n")
    message = refused(sweep, capsys, *SWEEP)
    assert "experiment table4-True: its code differs from commit" in message
    assert "in convs2s/new.py. Wanted a sweep of committed code" in message
