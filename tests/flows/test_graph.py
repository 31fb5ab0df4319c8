"""The DAG as read from DVC."""

from pathlib import Path

from pipelines.flows.graph import read_graph, up_to_date
from tests.flows import toy
from tests.pipeline import WITH_ENSEMBLE, bare_repository


def test_parents_gpus_deadlines_and_retries_come_from_dvc() -> None:
    """The flow has no DAG of its own, which could differ."""
    stages = read_graph(toy.ROOT)
    parents = {"train@1", "tune@1", "vocabulary", "candidates", "truecase", "download@test"}
    assert stages["translate@1"].parents == parents
    names = list(stages)
    assert all(names.index(parent) < names.index(name) for name in names for parent in stages[name].parents)
    train, download, align = stages["train@1"], stages["download@train"], stages["align"]
    assert (train.gpus, train.hours, train.retries) == (1, 720, (10,))
    assert (download.gpus, download.retries, len(download.parents)) == (0, (10, 60, 300), 0)
    assert (align.gpus, align.hours, align.retries) == (0, 24, ())
    assert all(stages[name].gpus == 1 for name in ("tune@1", "translate@1"))


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
