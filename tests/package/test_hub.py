"""Models on the Hugging Face Hub, with a local stand-in for its API."""

import base64
import hashlib
import importlib
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import convs2s
from convs2s.cli import main
from convs2s.package.hub import add_commit, locate
from tests.package.small_package import write_small_package

REVISION = "1" * 40
FILES: dict[str, bytes] = {}


class Hub(BaseHTTPRequestHandler):
    """Answers the requests of huggingface_hub to upload small files and to download a repository."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def answer(self, content: Any, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Length": str(len(body)), "X-Repo-Commit": REVISION, **names}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        url = f"http://{self.headers['Host']}/me/toy"
        if self.path == "/api/repos/create":
            assert json.loads(body)["name"] == "toy"
            self.answer({"url": url, "name": "me/toy", "id": "me/toy"})
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif self.path.startswith("/api/models/me/toy/preupload/main"):
            names = [file["path"] for file in json.loads(body)["files"]]
            files = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            self.answer({"files": files})
        elif self.path.startswith("/api/models/me/toy/commit/main"):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    FILES[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self.answer({"success": True, "commitOid": REVISION, "commitUrl": f"{url}/commit/{REVISION}"})
        else:
            self.answer({"error": f"no {self.path}"}, 404)

    def do_GET(self) -> None:
        if self.path.startswith("/api/models/me/toy"):
            siblings = [{"rfilename": name, "size": len(data)} for name, data in FILES.items()]
            tree = [
                {"type": "file", "path": name, "size": len(data), "oid": "0"} for name, data in FILES.items()
            ]
            info = {"id": "me/toy", "sha": REVISION, "siblings": siblings}
            self.answer(tree if "/tree/" in self.path else info)
        elif self.path.startswith("/me/toy/resolve/") and self.path.rpartition("/")[2] in FILES:
            data = FILES[self.path.rpartition("/")[2]]
            self.answer(data, ETag=f'"{hashlib.sha256(data).hexdigest()}"')
        else:
            self.answer({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")

    do_HEAD = do_GET


@contextmanager
def serving() -> Iterator[str]:
    """Serve the stand-in; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield huggingface_hub, which talks only to the stand-in and has its cache in the test's folder."""
    library = importlib.import_module("huggingface_hub")
    with serving() as address:
        api = library.HfApi(endpoint=address, token="hf_toy")
        monkeypatch.setattr(library, "HfApi", lambda: api)
        fetch = library.snapshot_download
        cache = tmp_path / "cache"
        monkeypatch.setattr(
            library, "snapshot_download", lambda *a, **k: fetch(*a, endpoint=address, cache_dir=cache, **k)
        )
        yield library
    FILES.clear()


def test_a_model_goes_to_the_hub_and_comes_back(
    hub: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The uploaded card names the commit; the folder's own card does not change."""
    folder = write_small_package(tmp_path)
    card = "# toy\n\n| | |\n|---|---|\n| seed | 7 |\n"
    (folder / "README.md").write_text(card)
    assert main(["upload", "me/toy", "--model", str(folder), "--commit", "abcdef1"]) == 0
    assert capsys.readouterr().out.endswith("/me/toy\n")
    assert FILES["README.md"].decode() == card + "| commit of the code | `abcdef1` |\n"
    assert (folder / "README.md").read_text() == card
    texts = ["ein Haus.", "der Hund"]
    assert convs2s.load("hf:me/toy", "cpu").translate(texts) == convs2s.load(folder, "cpu").translate(texts)


def test_an_incomplete_repository_is_found(hub: Any, tmp_path: Path) -> None:
    """The digests in model.json are checked, as for any folder."""
    folder = write_small_package(tmp_path)
    FILES.update({path.name: path.read_bytes() for path in folder.iterdir()})
    FILES["target.tsv"] = FILES["target.tsv"][:-4]
    with pytest.raises(ValueError, match=r"target\.tsv has changed since it was written"):
        convs2s.load("hf:me/toy", "cpu")


def test_a_damaged_folder_is_not_uploaded(
    hub: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command must not even create a repository."""
    folder = write_small_package(tmp_path)
    (folder / "dictionary.tsv").unlink()
    assert main(["upload", "me/toy", "--model", str(folder)]) == 2
    assert "lacks dictionary.tsv" in capsys.readouterr().err
    assert FILES == {}


def test_a_missing_repository_is_an_error(hub: Any) -> None:
    """A typo in the name must not look like a local problem."""
    with pytest.raises(OSError, match="404"):
        locate("hf:me/other")


def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Both Python and the command line must say how to install it."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"pip install 'convs2s\[hub\]'"):
        locate("hf:me/toy")
    assert main(["translate", "--model", "hf:me/toy"]) == 2
    assert "pip install 'convs2s[hub]'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["hf:", "hf:toy", "hf:me/toy@", "hf:me/../toy/x", "hf:me/toy name"])
def test_a_name_of_another_form_is_refused(name: str) -> None:
    """A wrong name must be reported before anything is downloaded."""
    with pytest.raises(ValueError, match=r"expected hf:OWNER/NAME or hf:OWNER/NAME@REVISION"):
        locate(name)


def test_other_names_are_folders() -> None:
    """Only the prefix hf: means the Hub."""
    assert locate("data/models/1") == Path("data/models/1")


def test_a_card_gets_a_commit_once_and_only_if_known() -> None:
    """A card without a seed was written by the user."""
    card = "| seed | 7 |\n| seed | 8 |"
    assert add_commit(card, "abc") == "| seed | 7 |\n| commit of the code | `abc` |\n| seed | 8 |"
    assert add_commit(card, None) == card
    assert add_commit("# mine", "abc") == "# mine"
