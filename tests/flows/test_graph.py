"""The DAG, read from DVC."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.flows.graph import Stage, read_graph, restrict, up_to_date
from pipelines.flows.run_stages import RunParams
from tests.flows import toy
from tests.pipeline import WITH_ENSEMBLE, bare_repository

ROOT = toy.ROOT


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    return read_graph(ROOT)


def test_an_ensembles_stages_are_run_as_those_of_a_seed(tmp_path: Path) -> None:
    """They exist only if it is wanted."""
    stages = read_graph(bare_repository(tmp_path, WITH_ENSEMBLE))
    assert (stages["tune-ensemble@all"].gpus, stages["ensemble@all"].gpus) == (1, 1)
    assert stages["replace-ensemble@all"].parents == {"code", "ensemble@all", "align"}
    assert "replace-ensemble@all" in stages["evaluate"].parents


def test_parents_are_those_of_dvc(stages: dict[str, Stage]) -> None:
    """The flow has no DAG of its own."""
    parents = {"code", "train@1", "tune@1", "vocabulary", "candidates", "truecase", "download@test"}
    assert stages["translate@1"].parents == parents
    assert stages["download@train"].parents == {"code"}
    assert stages["code"].parents == set()
    names = list(stages)
    assert all(names.index(parent) < names.index(name) for name in names for parent in stages[name].parents)


def test_dvc_yaml_says_how_stages_are_run(stages: dict[str, Stage]) -> None:
    """GPUs, deadlines and retries stand where the stage stands."""
    train, download, align = stages["train@1"], stages["download@train"], stages["align"]
    assert (train.gpus, train.hours, train.retries) == (1, 720, (10,))
    assert train.work == "data/checkpoints/1"
    assert train.outputs["curves"] == "data/trained/1/curves"
    assert (download.gpus, download.retries) == (0, (10, 60, 300))
    assert (align.gpus, align.hours, align.retries, align.work) == (0, 24, (), None)
    assert all(stages[name].gpus == 1 for name in ("tune@1", "translate@1"))


def test_what_dvc_does_not_cache_is_made_at_home(stages: dict[str, Stage]) -> None:
    """An output in git would not come back from a remote worker, whose clone it would leave edited."""
    everything = RunParams(remote="all")
    assert all(everything.is_remote(stage) for stage in stages.values())
    assert not everything.is_remote(replace(stages["evaluate"], travels=False))
    trainings = RunParams(remote="gpu")
    assert trainings.is_remote(stages["train@1"]) and not trainings.is_remote(stages["align"])


def test_trainings_take_as_many_gpus_as_workers(tmp_path: Path) -> None:
    """Else two trainings would share one."""
    repo = toy.make(tmp_path / "toy")
    content = (repo / "dvc.yaml").read_text().replace("gpus: 1", 'gpus: "${train.workers}"')
    (repo / "dvc.yaml").write_text(content)
    toy.set_params(repo, {"train.workers": 4})
    assert read_graph(repo)["train@2"].gpus == 4


def test_a_missing_output_is_named(stages: dict[str, Stage]) -> None:
    """The artifacts rest on names in dvc.yaml."""
    for kind, names in {
        "train@1": ("curves", "metrics.json"),
        "evaluate": ("scores.csv", "signatures.json", "examples.tsv", "pictures"),
    }.items():
        for name in names:
            assert stages[kind].outputs[name].endswith(name)


def test_targets_bring_what_they_need(stages: dict[str, Stage]) -> None:
    """As `dvc repro TARGET` does."""
    assert set(restrict(stages, ["filter"])) == {
        "code", "download@train", "download@valid", "truecase", "tokenize@train", "tokenize@valid", "filter",
    }  # fmt: skip
    assert set(restrict(stages, ["download"])) == {
        "code", "download@train", "download@valid", "download@development", "download@test",
    }  # fmt: skip
    assert restrict(stages, []) == stages
    with pytest.raises(
        ValueError, match=r"targets: found filtr, which is not a stage\. Wanted some of: align, c"
    ):
        restrict(stages, ["filtr"])


def test_the_signature_changes_with_all_that_a_stage_computes_from(tmp_path: Path) -> None:
    """A sweep shares stages by it."""
    repo = toy.make(tmp_path / "toy")
    before = {name: stage.signature for name, stage in read_graph(repo).items()}
    toy.set_params(repo, {"train.dropout": 0.4})
    after = {name: stage.signature for name, stage in read_graph(repo).items()}
    assert {name for name in before if before[name] != after[name]} == {"train@1", "train@2", "evaluate"}
    assert len(set(before.values())) == len(toy.NAMES)


def test_what_is_up_to_date_is_known_without_a_run(tmp_path: Path) -> None:
    """What needs a stage that is not may change with it, so DVC must be asked again then."""
    repo = toy.make(tmp_path / "toy")
    assert up_to_date(repo) == set()
    toy.dvc(repo, "repro")
    assert up_to_date(repo) == {*toy.NAMES}
    toy.set_params(repo, {"train.dropout": 0.4})
    assert up_to_date(repo) == {"download", "align"}
    (repo / "data/alignment/content").write_text("edited")
    assert up_to_date(repo) == {"download"}
    (repo / "data/raw/content").unlink()
    assert up_to_date(repo) == set()


def test_a_broken_dvc_yaml_is_reported_with_dvcs_reason(tmp_path: Path) -> None:
    """It may be edited by hand."""
    repo = toy.make(tmp_path / "toy")
    (repo / "dvc.yaml").write_text("stages: {train: {cmd: x, matrix: {seed: '${nothing.there}'}}}")
    with pytest.raises(ValueError, match=r"DVC cannot read the pipeline in .*nothing"):
        read_graph(repo)
