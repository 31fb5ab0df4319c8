"""The wheel has what users need."""

import shutil
import zipfile
from pathlib import Path

import pytest
from setuptools.build_meta import build_editable, build_wheel

ROOT = Path(__file__).parent.parent


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a copy of the files that a build reads, because builds write next to them."""
    folder = tmp_path / "source"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("convs2s", "pipelines"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_wheel_is_the_library_with_its_types(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel has convs2s and its command, but not pipelines, which needs dvc.yaml and experiments/.

    An editable install puts the project's folder on the path, so pipelines can be imported as well.
    """
    monkeypatch.chdir(source)
    with zipfile.ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        commands = wheel.read("convs2s-0.1.0.dist-info/entry_points.txt").decode()
    files = [path for path in (source / "convs2s").rglob("*") if path.is_file()]
    assert names == {path.relative_to(source).as_posix() for path in files}
    assert {"convs2s/py.typed", "convs2s/__init__.pyi"} <= names
    assert "convs2s = convs2s.cli:main" in commands
    with zipfile.ZipFile(tmp_path / build_editable(str(tmp_path))) as wheel:
        [path] = [name for name in wheel.namelist() if name.endswith(".pth")]
        assert Path(wheel.read(path).decode().strip()) == source
