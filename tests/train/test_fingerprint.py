import hashlib
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.model import ModelParams
from convs2s.config.train import TrainParams
from convs2s.config.vocabulary import SelectionParams
from convs2s.train.fingerprint import NO_EFFECT, training_fingerprint
from convs2s.train.run import NO_CODE
from tests.model.small import small_params
from tests.train.tiny import default_params

MODEL, TRAIN = small_params(), default_params().train
SELECTION = SelectionParams(common=2, candidates=5)


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file contains its own name; the working directory is the pipeline's."""
    monkeypatch.chdir(tmp_path)
    for split in ("train", "valid"):
        for name in ("source.ids", "source.offsets", "target.ids", "target.offsets"):
            path = Path("encoded", split, f"{name}.npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(str(path).encode())
    Path("candidates.npz").write_bytes(b"candidates")


def prints(
    model: ModelParams = MODEL, train: TrainParams = TRAIN, code: Mapping[str, str] = NO_CODE
) -> dict[str, str]:
    paths = Path("encoded"), Path("candidates.npz")
    return training_fingerprint(model, train, 3, *paths, Path("digests.json"), workers=4, code=code)


@pytest.mark.usefixtures("_files")
def test_data_are_part_of_the_fingerprint() -> None:
    """Another corpus means another training; candidates count only if they are used."""
    before, selecting = prints(), prints(train=TRAIN.model_copy(update={"selection": SELECTION}))
    assert selecting.keys() - before.keys() == {"candidates.npz"}
    Path("encoded", "valid", "target.ids.npy").write_bytes(b"another")
    after = prints()
    assert {name for name in before if before[name] != after[name]} == {"encoded/valid/target.ids.npy"}


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("change", ["time", "size", "file"])
def test_files_are_read_once_until_they_change(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gigabytes need not be hashed at each start; a changed file differs in time, size or inode."""
    before, path = prints(), Path("encoded", "train", "source.ids.npy")
    read, hashing = list[str](), hashlib.file_digest

    def note(stream: Any, name: Any) -> Any:
        read.append(stream.name)
        return hashing(stream, name)

    monkeypatch.setattr(hashlib, "file_digest", note)
    assert prints() == before
    assert read == []
    status, size = path.stat(), path.stat().st_size + (change == "size")
    if change == "file":
        path.rename("old")
    path.write_bytes(b"x" * size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + (change == "time")))
    assert {name for name, value in prints().items() if value != before[name]} == {str(path)}
    assert read == [str(path)]


@pytest.mark.usefixtures("_files")
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


@pytest.mark.usefixtures("_files")
def test_every_setting_of_an_update_is_part_of_the_fingerprint() -> None:
    """These are all of `train` except the length of training and the checkpoint interval."""
    selecting = prints(train=TRAIN.model_copy(update={"selection": SELECTION}))
    assert set(TrainParams.model_fields) - NO_EFFECT <= selecting.keys()
    assert {"seed", "model", "workers"} <= selecting.keys()
    assert selecting["workers"] == "4"  # on all machines


@pytest.mark.usefixtures("_files")
def test_code_is_part_of_the_fingerprint() -> None:
    """By module, so that the message about a checkpoint of other code can name what has changed."""
    one, other = prints(code={"loop": "1", "loss": "2"}), prints(code={"loop": "1", "loss": "3"})
    assert {name for name in one if one[name] != other[name]} == {"code of loss"}
