"""The DAG as read from DVC."""

from pathlib import Path

import pytest

from pipelines.flows.graph import Stage, read_graph, up_to_date
from tests.flows import toy
from tests.pipeline import WITH_ENSEMBLE, bare_repository


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    """Return the stages of this repository by name. The flow has no DAG of its own, which could differ."""
    return read_graph(toy.ROOT)


def test_parents_are_the_stages_whose_outputs_are_read(stages: dict[str, Stage]) -> None:
    """A stage that started before one of them would read what is not there yet."""
    parents = {"train@1", "tune@1", "vocabulary", "candidates", "truecase", "download@test"}
    assert stages["translate@1"].parents == parents
    assert stages["download@train"].parents == set()


def test_parents_come_before_their_children(stages: dict[str, Stage]) -> None:
    """Stages are submitted in this order."""
    names = list(stages)
    assert all(names.index(parent) < names.index(name) for name in names for parent in stages[name].parents)


@pytest.mark.parametrize(
    ("name", "gpus"), [("train@1", 1), ("tune@1", 1), ("translate@1", 1), ("download@train", 0), ("align", 0)]
)
def test_only_stages_with_a_model_use_gpus(stages: dict[str, Stage], name: str, gpus: int) -> None:
    """A GPU that is leased to another stage would stand idle."""
    assert stages[name].gpus == gpus


def test_a_training_leases_a_gpu_for_each_process(tmp_path: Path) -> None:
    """It may have fewer than shares of an update; a params.yaml of version 1.1 does not say."""
    repo = bare_repository(tmp_path, {"train.workers": 8})
    gpus = []
    for processes in (None, 4, 16):
        toy.set_params(repo, {"run.processes": processes})
        gpus.append(read_graph(repo)["train@1"].gpus)
    text = (repo / "params.yaml").read_text(encoding="utf-8")
    (repo / "params.yaml").write_text(text.replace("  processes: 16", ""), encoding="utf-8")
    assert [*gpus, read_graph(repo)["train@1"].gpus] == [8, 4, 8, 8]


def test_a_stage_without_work_is_known(tmp_path: Path) -> None:
    """It would wait for a GPU, perhaps for ever, only to write that there is nothing."""
    repo = bare_repository(tmp_path, WITH_ENSEMBLE)
    idle = ["augment", "tune-ensemble@all", *(f"tune@{seed}" for seed in (1, 2))]
    assert sorted(name for name, stage in read_graph(repo).items() if stage.is_idle) == idle
    toy.set_params(repo, {"augment.models": "data/own", "translate.alpha": "tuned"})
    assert not any(stage.is_idle for stage in read_graph(repo).values())


@pytest.mark.parametrize(("name", "hours"), [("train@1", 720), ("align", 24)])
def test_a_stage_has_its_deadline(stages: dict[str, Stage], name: str, hours: float) -> None:
    """A training may take weeks; any other stage that takes a day hangs."""
    assert stages[name].hours == hours


@pytest.mark.parametrize(
    ("name", "retries"), [("train@1", (10,)), ("download@train", (10, 60, 300)), ("align", ())]
)
def test_a_stage_is_retried_where_that_helps(
    stages: dict[str, Stage], name: str, retries: tuple[int, ...]
) -> None:
    """Networks and GPUs may fail for a while; a stage that only computes would fail again."""
    assert stages[name].retries == retries


def test_the_signature_depends_on_all_inputs_of_a_stage(repo: Path) -> None:
    """Rows of a sweep share the stages whose signatures are equal."""
    before = {name: stage.signature for name, stage in read_graph(repo).items()}
    toy.set_params(repo, {"train.dropout": 0.4})
    after = {name: stage.signature for name, stage in read_graph(repo).items()}
    assert {name for name in before if before[name] != after[name]} == {"train@1", "train@2", "evaluate"}
    assert len(set(before.values())) == len(toy.NAMES)


def test_each_stage_item_has_a_signature_of_its_own(tmp_path: Path) -> None:
    """Those of a matrix share their command, which does not name the seed."""
    stages = read_graph(bare_repository(tmp_path, WITH_ENSEMBLE))
    assert stages["train@1"].command == stages["train@2"].command
    assert len({stage.signature for stage in stages.values()}) == len(stages)


def test_up_to_date_stages_are_known_without_a_run(repo: Path) -> None:
    """A descendant of a stage that must run may change with it, so DVC must check it again then."""
    assert up_to_date(repo) == set()
    toy.dvc(repo, "repro")
    assert up_to_date(repo) == {*toy.NAMES}
    toy.set_params(repo, {"train.dropout": 0.4})
    assert up_to_date(repo) == {"download", "align"}
    (repo / "data/alignment/content").write_text("edited")
    assert up_to_date(repo) == {"download"}
    (repo / "data/raw/content").unlink()
    assert up_to_date(repo) == set()
