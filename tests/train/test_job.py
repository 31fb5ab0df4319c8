from pathlib import Path
from typing import Any

import pytest

from convs2s.config.text import SelectionParams
from convs2s.config.train import TrainParams
from convs2s.train.running.job import NO_EFFECT, Job, training_fingerprint
from tests.train.tiny import PATHS, default_params, write_tiny

SELECTING = {"selection": SelectionParams(common=2, candidates=5)}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny(tmp_path)
    monkeypatch.chdir(tmp_path)


def prints(**changes: Any) -> dict[str, str]:
    params = default_params()
    train = params.train.model_copy(update=changes)
    return training_fingerprint(Job(params.model, train, params.run, 3, *PATHS, {}, ""), workers=4)


def test_data_are_part_of_the_fingerprint() -> None:
    """Another corpus means another training; candidates count only if they are used."""
    before = prints()
    assert prints(**SELECTING).keys() - before.keys() == {"candidates/candidates.npz"}
    Path("encoded", "valid", "target.ids.npy").write_bytes(b"another")
    assert {name for name, _ in before.items() ^ prints().items()} == {"encoded/valid/target.ids.npy"}


def test_the_model_to_start_from_is_part_of_the_fingerprint() -> None:
    """Its content counts, not its place: another model may be there now, or it may have moved."""
    found = [prints()]
    for folder, content in (("start", "one"), ("start", "other"), ("moved", "other")):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "model.json").write_text(content)
        found.append(prints(start_from=folder))
    for before, after in ((found[0], found[1]), (found[1], found[2])):
        assert {name for name, _ in before.items() ^ after.items()} == {"start_from"}
    assert found[2] == found[3]


def test_every_setting_of_an_update_is_part_of_the_fingerprint() -> None:
    """These are all of `train` except the length of training; workers are those on all machines."""
    found = prints(**SELECTING)
    later = {"graphs": True}  # without its default; it cannot be together with selection
    assert {"seed", "model", *TrainParams.model_fields} - NO_EFFECT - later.keys() <= found.keys()
    assert prints(batch_by="sentences", **later)["graphs"] == "true"
    assert found["workers"] == "4"
