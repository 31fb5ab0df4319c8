"""The command `convs2s serve`, up to the point where it starts serving."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from convs2s.cli import main
from tests.serve.running import write_pair


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect applications instead of serving them."""
    found: list[Any] = []
    monkeypatch.setattr("convs2s.serve.server.serve", lambda app, _: found.append(app))
    return found


def test_folders_of_one_pair_are_an_ensemble(
    tmp_path: Path, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Folders of other language pairs are served alongside it; the address is printed."""
    names = [("1", "en", "de"), ("2", "en", "de"), ("3", "fr", "de")]
    folders = [str(write_pair(tmp_path / name, source, target)) for name, source, target in names]
    assert main(["serve", "--model", *folders, "--port", "0", "--device", "cpu", "--beam-size", "3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("en-de, fr-de: http://127.0.0.1:")
    [app] = served
    assert app.description == "Translates en-de, fr-de."
    [first, second] = TestClient(app, base_url="http://localhost").get("/models").json()
    assert first["summary"].startswith("Ensemble of 2 models, the first: English to German, trained on 1,234")
    assert second["summary"].startswith("French to German, trained on 1,234 sentence pairs of tests")


OWN = ["localhost:5000", "LOCALHOST", "127.0.0.1", "[::1]:5000"]
FOREIGN = ["evil.example:5000", "127.0.0.1.evil.example", "localhost@evil.example", "::1", ""]


@pytest.mark.parametrize(
    ("options", "accepted", "refused"),
    [
        ([], OWN, FOREIGN),
        (["--host", "127.0.0.2"], [*OWN, "127.0.0.2:80"], FOREIGN),
        (["--host", "0.0.0.0"], OWN + FOREIGN, []),
        (["--api-key-file", "keys.txt"], OWN + FOREIGN, []),
    ],
)
def test_a_local_server_without_keys_answers_only_to_its_names(
    tmp_path: Path,
    served: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    accepted: list[str],
    refused: list[str],
) -> None:
    """Any site can point a name of its own at 127.0.0.1; its pages may read what that name answers."""
    monkeypatch.chdir(tmp_path)
    Path("keys.txt").write_text("key\n")
    folder = str(write_pair(tmp_path, "en", "de"))
    assert main(["serve", "--model", folder, "--port", "0", "--device", "cpu", *options]) == 0
    client = TestClient(served[0])
    for path in ("/", "/health"):
        answers = {host: client.get(path, headers={"Host": host}) for host in accepted + refused}
        assert {host: answer.status_code for host, answer in answers.items()} == (
            dict.fromkeys(accepted, 200) | dict.fromkeys(refused, 400)
        )
    for host in refused:
        assert answers[host].text == "Invalid host header"
        assert answers[host].headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-lines", "0"], "error: --max-lines: expected 1 or more, found 0."),
        (
            ["--max-lines", "500"],
            "error: --max-lines: expected at most 400, since no more may wait",
        ),
        (["--max-waiting", "150"], "error: --max-lines: expected at most 150, since no more may wait"),
        (["--port", "99999"], "error: --port: expected a number from 0 to 65535, found 99999."),
        (["--port", "0"], "error: nowhere is not a folder. Expected a model folder"),
        (["--api-key-file", "/dev/null"], "error: /dev/null is empty; expected an API key on each line."),
        (["--host", "192.0.2.1"], "error: cannot listen on 192.0.2.1 port 5000"),
    ],
)
def test_wrong_options_are_named(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no traceback; a server that is open to other machines without a key warns first."""
    assert main(["serve", "--model", "nowhere", *options]) == 2
    error = capsys.readouterr().err
    assert f"convs2s: {message}" in error
    assert ("warning: anyone who can reach 192.0.2.1" in error) == ("--host" in options)
    monkeypatch.setattr("convs2s.commands.serve.EXTRA", ("fastapi", "no_such_module"))
    assert main(["serve", "--model", "nowhere", *options]) == 2
    assert "serve needs no_such_module. Install it: pip install 'convs2s[serve]'" in capsys.readouterr().err
