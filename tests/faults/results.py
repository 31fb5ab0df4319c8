"""What a repository holds, to compare with an undisturbed run."""

import json
import shutil
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


def lock(folder: Path) -> dict[str, Any]:
    """Return the stages of dvc.lock."""
    return dict(YAML(typ="safe").load(folder / "dvc.lock")["stages"])


def outputs(folder: Path) -> dict[str, str]:
    """Return the hash of each output file, by path, and each entry of dvc.lock, by stage; except costs."""
    stages = lock(folder)
    for stage in stages.values():
        stage["outs"] = [out for out in stage["outs"] if not out["path"].startswith("data/costs/")]
    entries = {name: json.dumps(stage, sort_keys=True) for name, stage in stages.items()}
    places = [folder / out["path"] for stage in stages.values() for out in stage["outs"]]
    files = (file for place in places for file in [place, *place.rglob("*")] if file.is_file())
    return entries | {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def differences(folder: Path, expected: Mapping[str, str]) -> Iterator[str]:
    """Yield how a repository differs from an undisturbed run, including unfinished files."""
    actual = outputs(folder)
    names = expected.keys() | actual
    yield from (f"{name} differs" for name in names if actual.get(name) != expected.get(name))
    yield from (f"{path} is left" for path in (folder / "data").rglob(".*"))


def begin_anew(folder: Path) -> None:
    """Delete everything that has been computed; the user's files stay."""
    for path in [*(folder / "data").iterdir(), folder / ".dvc" / "cache", folder / ".dvc" / "tmp"]:
        if path.name not in {"own", "none"}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "dvc.lock").unlink()
