import itertools
from pathlib import Path

import pytest

from convs2s.config.text import SelectionParams
from convs2s.config.train import TrainParams
from convs2s.train.fingerprint import NO_EFFECT, training_fingerprint
from tests.model.small import small_params
from tests.train.tiny import default_params

TRAIN = default_params().train
SELECTION = SelectionParams(common=2, candidates=5)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file contains its own name; the working directory is the pipeline's."""
    monkeypatch.chdir(tmp_path)
    for split in ("train", "valid"):
        for name in ("source.ids", "source.offsets", "target.ids", "target.offsets"):
            path = Path("encoded", split, f"{name}.npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(str(path).encode())
    Path("candidates.npz").write_bytes(b"candidates")


def prints(train: TrainParams = TRAIN) -> dict[str, str]:
    paths = Path("encoded"), Path("candidates.npz")
    return training_fingerprint(small_params(), train, 3, *paths, workers=4, code={})


def test_data_are_part_of_the_fingerprint() -> None:
    """Another corpus means another training; candidates count only if they are used."""
    before, selecting = prints(), prints(train=TRAIN.model_copy(update={"selection": SELECTION}))
    assert selecting.keys() - before.keys() == {"candidates.npz"}
    Path("encoded", "valid", "target.ids.npy").write_bytes(b"another")
    after = prints()
    assert {name for name in before if before[name] != after[name]} == {"encoded/valid/target.ids.npy"}


def test_the_model_to_start_from_is_part_of_the_fingerprint() -> None:
    """By content, not by place: another model may have taken its place, or it may have moved."""
    found = [prints()]
    for folder, content in (("start", "one"), ("start", "other"), ("moved", "other")):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "model.json").write_text(content)
        found.append(prints(train=TRAIN.model_copy(update={"start_from": folder})))
    for before, after in itertools.pairwise(found[:3]):
        assert before.keys() == after.keys()
        assert {name for name in before if before[name] != after[name]} == {"start_from"}
    assert found[2] == found[3]


def test_every_setting_of_an_update_is_part_of_the_fingerprint() -> None:
    """These are all of `train` except the length of training and the checkpoint interval."""
    selecting = prints(train=TRAIN.model_copy(update={"selection": SELECTION}))
    assert set(TrainParams.model_fields) - NO_EFFECT <= selecting.keys()
    assert {"seed", "model", "workers"} <= selecting.keys()
    assert selecting["workers"] == "4"  # on all machines
