"""DVC's settings for one clone, .dvc/config.local: not in git, and with paths of this machine."""

from collections.abc import Mapping
from pathlib import Path

from configobj import ConfigObj


def write_local(root: Path, sections: Mapping[str, Mapping[str, object]]) -> None:
    """Set values and keep the others. DVC's own `Config.edit` fails on a path that is not ASCII."""
    path = root / ".dvc" / "config.local"
    config = ConfigObj(str(path), encoding="utf-8", interpolation=False)
    for name, values in sections.items():
        config.setdefault(name, {}).update(values)
    config.write()
