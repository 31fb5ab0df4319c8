"""The command `convs2s serve`, up to the point where it starts serving."""

from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from convs2s.cli import main
from convs2s.serve.pairs import LanguagePair, load_pairs
from convs2s.serve.workers import check_workers
from tests.package.small_package import write_small_package


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect applications instead of serving them."""
    apps: list[Any] = []
    monkeypatch.setattr("convs2s.serve.endings.Server.run", lambda server, _: apps.append(server.config.app))
    return apps


def test_folders_of_one_pair_are_an_ensemble(tmp_path: Path, served: list[Any]) -> None:
    """Folders of other language pairs are served alongside it; without keys, it answers only as localhost."""
    folders = [
        str(write_small_package(tmp_path / name, languages=(source, "de")))
        for name, source in (("1", "en"), ("2", "en"), ("3", "fr"))
    ]
    assert main(["serve", "--model", *folders, "--device", "cpu", "--beam-size", "3"]) == 0
    [app] = served
    assert app.description == "Translates en-de, fr-de."
    client = TestClient(app, base_url="http://localhost")
    [first, second] = client.get("/models").json()
    assert first["summary"].startswith("Ensemble of 2 models, the first: English to German, trained on 1,234")
    assert second["summary"].startswith("French to German, trained on 1,234 sentence pairs of tests")
    hosts = {"localhost:5000": 200, "127.0.0.1": 200, "[::1]:5000": 200, "evil.example:5000": 400, "": 400}
    assert {host: client.get("/", headers={"Host": host}).status_code for host in hosts} == hosts


@pytest.mark.parametrize(
    ("options", "keeps_literals", "lowers"),
    [([], True, True), (["--no-keep-literals"], False, True), (["--no-capitals"], True, False)],
)
def test_literals_and_capitals_are_those_of_the_server(
    tmp_path: Path, served: list[Any], options: list[str], keeps_literals: bool, lowers: bool
) -> None:
    """LibreTranslate's requests have no field for them."""
    assert main(["serve", "--model", str(write_small_package(tmp_path)), "--device", "cpu", *options]) == 0
    client = TestClient(served[0], base_url="http://localhost")

    def translate(text: str) -> str:
        answer = client.post("/translate", json={"q": text, "source": "en", "target": "de"})
        return str(answer.json()["translatedText"])

    assert ("%s" in translate("ein %s Haus")) == keeps_literals
    assert (translate("EIN HAUS") == translate("ein Haus").upper()) == lowers


@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--api-key-file", "keys.txt"]])
def test_a_server_for_others_or_with_keys_answers_to_any_name(
    tmp_path: Path, served: list[Any], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """A proxy in front of it may pass on any Host."""
    monkeypatch.chdir(tmp_path)
    Path("keys.txt").write_text("key\n")
    assert main(["serve", "--model", str(write_small_package(tmp_path)), *options]) == 0
    assert TestClient(served[0]).get("/health", headers={"Host": "translate.example"}).status_code == 200


def test_several_workers_refuse_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CUDA fails in a forked process: the server would answer each request with 500."""

    def load_on_gpu(*arguments: Any, **settings: Any) -> list[LanguagePair]:
        pairs = load_pairs(*arguments, **settings)
        pairs[0].translator.words.device = torch.device("cuda:1")
        return pairs

    monkeypatch.setattr("convs2s.serve.pairs.load_pairs", load_on_gpu)
    monkeypatch.setattr("convs2s.serve.workers.Supervisor.run", lambda _: None)
    assert (
        main(["serve", "--model", str(write_small_package(tmp_path)), "--port", "0", "--workers", "2"]) == 2
    )
    error = "convs2s: error: --workers 2: the model of en-de is on cuda:1, which forked processes cannot use."
    assert error in capsys.readouterr().err


def test_several_workers_need_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere they would go on without a server that was killed, and keep its port."""
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(ValueError, match="--workers 3: several workers need Linux"):
        check_workers([], 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-lines", "0"], "error: --max-lines: expected a number from 1 to 1,000,000, found 0."),
        (["--port", "99999"], "error: --port: expected a number from 0 to 65,535, found 99999."),
        (["--port", "-1"], "error: --port: expected a number from 0 to 65,535, found -1."),
        (["--threads", "100000"], "error: --threads: expected a number from 1 to 4,096, found 100000."),
        (["--workers", "0"], "error: --workers: expected a number from 1 to 4,096, found 0."),
        (["--batch-lines", "10000000"], "error: --batch-lines: expected a number from 1 to 1,000,000, found"),
        (
            ["--max-characters", "10000000000"],
            "error: --max-characters: expected a number from 1 to 1,000,000,000,",
        ),
        ([], "error: nowhere is not a folder. Expected a model folder"),
        (["--api-key-file", "/dev/null"], "error: /dev/null is empty; expected an API key on each line."),
        (["--host", "192.0.2.1"], "warning: anyone who can reach 192.0.2.1"),
    ],
)
def test_wrong_options_are_named(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no traceback; a server that is open to other machines without a key warns first."""
    assert main(["serve", "--model", "nowhere", *options]) == 2
    assert f"convs2s: {message}" in capsys.readouterr().err
    monkeypatch.setattr("convs2s.commands.shared.find_spec", lambda name: None if name == "uvicorn" else name)
    assert main(["serve", "--model", "nowhere", *options]) == 2
    assert "serve needs uvicorn. Install it: pip install 'convs2s[serve]'" in capsys.readouterr().err
