"""The wheel has what users need: it is built, and installed where nothing else is."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import httpx
import pytest
from ruamel.yaml import YAML
from setuptools.build_meta import build_editable, build_sdist, build_wheel

import convs2s
from tests.golden import write_checkpoint, write_dictionaries
from tests.package.small_package import write_small_package

ROOT = Path(__file__).parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
OF_EXTRAS = {"dvc", "fastapi", "lxml", "matplotlib", "nltk", "pandas", "prefect", "requests", "sacrebleu"}
"""Some of the packages that only extras need."""
TEXT = "ein Haus und"


def test_the_version_is_the_same_everywhere() -> None:
    """Who cites it, or looks for its changes, must find the version that is installed."""
    citation = YAML(typ="safe", pure=True).load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == VERSION
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION


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


def list_files(wheel: Path) -> set[str]:
    """Return the names of the files in a wheel, but for those that describe it."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_is_the_library_with_its_types(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel has convs2s and its command, but not pipelines, which needs dvc.yaml and experiments/.

    An editable install puts the project's folder on the path, so pipelines can be imported as well.
    """
    monkeypatch.chdir(source)
    wheel = tmp_path / build_wheel(str(tmp_path))
    files = [path for path in (source / "convs2s").rglob("*") if path.is_file()]
    assert list_files(wheel) == {path.relative_to(source).as_posix() for path in files}
    assert {"convs2s/py.typed", "convs2s/__init__.pyi"} <= list_files(wheel)
    with zipfile.ZipFile(wheel) as archive:
        commands = archive.read(f"convs2s-{VERSION}.dist-info/entry_points.txt").decode()
    assert "convs2s = convs2s.cli:main" in commands
    with zipfile.ZipFile(tmp_path / build_editable(str(tmp_path))) as archive:
        [path] = [name for name in archive.namelist() if name.endswith(".pth")]
        assert Path(archive.read(path).decode().strip()) == source


class Fresh:
    """A virtual environment without any package of this one's, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "venv" / "bin"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.environment = kept | {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}
        self.folder = folder / "empty"
        self.folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)

    def run(self, *words: str | Path, status: int = 0) -> tuple[str, str]:
        """Run a program of this environment to an exit status; return what it prints, and its errors."""
        command = [str(self.bin / words[0]), *map(str, words[1:])]
        ended = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == status, f"{command}: {ended.stdout}{ended.stderr}"
        return ended.stdout, ended.stderr

    def install(self, wheel: Path, extra: str = "") -> set[str]:
        """Install a wheel and what it needs, in the versions of constraints.txt; return all that is there."""
        self.run("python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", f"{wheel}{extra}")
        listed, _ = self.run("python", "-m", "pip", "list", "--format=freeze")
        return {line.partition("==")[0].lower() for line in listed.splitlines()}


@pytest.mark.slow
def test_the_wheel_alone_translates_and_serves(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is what a user without any extra has: the wheel of the source distribution and its packages.

    The packages come from the index that `make install` uses, PyTorch included.
    """
    monkeypatch.chdir(source)
    shutil.unpack_archive(tmp_path / build_sdist(str(tmp_path)), tmp_path / "unpacked")
    monkeypatch.chdir(tmp_path / "unpacked" / f"convs2s-{VERSION}")
    wheel = tmp_path / build_wheel(str(tmp_path))
    model = write_small_package(tmp_path)
    fresh = Fresh(tmp_path)
    expected = convs2s.load(model, "cpu").translate(TEXT)

    assert fresh.install(wheel) & OF_EXTRAS == set()
    assert fresh.run("convs2s", "--version") == (f"convs2s {VERSION}\n", "")
    (fresh.folder / "source.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    (fresh.folder / "target.txt").write_text(f"{expected}\n", encoding="utf-8")
    translate: list[str | Path] = ["convs2s", "translate", "--model", model, "--input", "source.txt"]
    assert fresh.run(*translate)[0] == f"{expected}\n"
    script = f"import convs2s; print(convs2s.load({str(model)!r}).translate({TEXT!r}))"
    assert fresh.run("python", "-c", script)[0] == f"{expected}\n"
    texts = ["--source", "source.txt", "--target", "target.txt"]
    fresh.run("convs2s", "candidates", "--model", model, *texts, "--output", "candidates.npz")
    fresh.run(*translate, "--candidates", "candidates.npz")
    dictionaries = write_dictionaries(tmp_path)
    checkpoint = write_checkpoint(tmp_path / "model.pt", "plain")
    fresh.run(
        "convs2s", "import-fairseq", checkpoint, "--source-dict", dictionaries[0],
        "--target-dict", dictionaries[1], "--out", "imported",
    )  # fmt: skip
    fresh.run("convs2s", "translate", "--model", "imported", "--input", "source.txt")

    for words in (["attention", TEXT, "--out", "attention.png"], ["serve"]):
        _, error = fresh.run("convs2s", *words, "--model", model, status=2)
        assert f"Install it: pip install 'convs2s[{words[0]}]'." in error

    fresh.install(wheel, "[attention,serve]")
    fresh.run("convs2s", "attention", TEXT, "--out", "attention.png", "--model", model)
    assert (fresh.folder / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert serve_one(fresh, model) == expected


def serve_one(fresh: Fresh, model: Path) -> str:
    """Return the text's translation by a server."""
    command = [str(fresh.bin / "convs2s"), "serve", "--model", str(model), "--port", "0"]
    server = subprocess.Popen(
        command, cwd=fresh.folder, env=fresh.environment, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    try:
        printed = ""
        while not (address := re.search(r"http://127\.0\.0\.1:\d+", printed)):
            line = server.stderr.readline()
            assert line, printed
            printed += line
        request = {"q": TEXT, "source": "en", "target": "de"}
        answer = httpx.post(f"{address[0]}/translate", json=request, timeout=60)
        return str(answer.json()["translatedText"])
    finally:
        server.terminate()
        server.communicate()
