"""Addresses, passwords and proxies of flows: a wrong one is refused or left out, and no secret is shown."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from unittest import mock

import pytest

from convs2s.base.messages import redact
from pipelines.flows import machine, workspace
from pipelines.flows.addresses import redact_calls
from tests.flows import toy
from tests.flows.server import free_port

URL = "PREFECT_API_URL"
NO_HOST = "expected an address, such as .*, found one that does not begin with http://HOST"
SECRETS = "found one with a user, a password, a query or a fragment, which logs would show"


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Leave the environment, and the folder, as they were; that of a test has no settings of Prefect."""
    with mock.patch.dict(os.environ), contextlib.chdir(Path()):
        for name in [name for name in os.environ if name.startswith("PREFECT_")]:
            del os.environ[name]
        yield


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (URL, "not a url", f"{URL}: {NO_HOST}"),
        (URL, "127.0.0.1:4200/api", f"{URL}: {NO_HOST}"),
        (URL, "ftp://127.0.0.1/api", f"{URL}: {NO_HOST}"),
        (URL, "http:///api", f"{URL}: {NO_HOST}"),
        (URL, "http://me:SECRET@h/a b", f"{URL}: {NO_HOST}"),
        (URL, "http://h:abc/api", f"{URL}: expected .* found a text that is no address"),
        (URL, "http://h:99999/api", f"{URL}: expected .* found port 99999"),
        (URL, "http://me:SECRET@h/api", f"{URL}: expected .* {SECRETS}"),
        (URL, "http://h/api?token=SECRET", f"{URL}: expected .* {SECRETS}"),
        ("PREFECT_API_AUTH_STRING", "SECRET", "STRING: expected USER:PASSWORD on one line, found another"),
        ("PREFECT_API_AUTH_STRING", "me:SECRET\nb", "STRING: expected USER:PASSWORD on one line"),
        ("FLOW_PORT", "abc", "FLOW_PORT: expected a port from 1 to 65535, found 'abc'"),
        ("FLOW_PORT", "0", "FLOW_PORT: expected a port from 1 to 65535, found '0'"),
        ("FLOW_PORT", "99999", "FLOW_PORT: expected a port from 1 to 65535, found '99999'"),
    ],
)
def test_a_wrong_setting_is_an_error_that_names_it(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a traceback, or a server that does not answer. No message has the secret."""
    monkeypatch.setitem(os.environ, name, value)
    monkeypatch.setattr(machine, "PORT", os.environ.get("FLOW_PORT", "4200"))
    with pytest.raises(ValueError, match=message) as error:
        machine.run_command(machine.parser().parse_args(["status"]))
    assert "SECRET" not in str(error.value)


def test_an_empty_setting_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of systemd have such lines. With an empty address, Prefect would start no server, nor ask one."""
    for name in (URL, "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_DATABASE_CONNECTION_URL"):
        monkeypatch.setitem(os.environ, name, "")
    machine.check_environment()
    assert not [name for name in os.environ if name.startswith("PREFECT_")]
    command = [sys.executable, "-c", "from pipelines.flows.machine import ADDRESS; print(ADDRESS)"]
    output = subprocess.check_output(command, env={**os.environ, "FLOW_PORT": ""}, text=True, cwd=toy.ROOT)
    assert output == "http://127.0.0.1:4200/api\n"


@pytest.mark.parametrize("content", ["", "SECRET\n"])
def test_a_damaged_password_starts_no_server(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file left empty by a full disk would start one that lets everybody in."""
    monkeypatch.setattr(workspace, "PASSWORD", tmp_path / "password")
    workspace.PASSWORD.write_text(content)
    with pytest.raises(ValueError, match=r"password \(without it, .*: expected USER:PASSWORD") as error:
        workspace.make_password()
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize("address", ["", "not a url", "ftp://h/SECRET", "http://h:x/SECRET"])
def test_a_hook_needs_an_address(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would notice before a run fails, and then only in the server's log."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{address}\n" if address else ""))
    with pytest.raises(ValueError, match="web hook: expected an address, such as https://") as error:
        machine.run_command(machine.parser().parse_args(["notify"]))
    assert "SECRET" not in str(error.value)


class Stranger(BaseHTTPRequestHandler):
    """Answers as a page or, below /moved, as a proxy that sends its callers to TLS."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(301 if self.path.startswith("/moved") else 200)
        self.send_header("Location", "https://127.0.0.1/")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize(
    ("path", "found"), [("", "-1 .not Prefect's API"), ("/moved", "301 .a redirect: expected the address")]
)
def test_another_server_is_not_taken_for_prefects(
    path: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address without /api has Prefect's pages; what follows would end in an error of a JSON reader."""
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ[URL] = f"http://127.0.0.1:{server.server_port}{path}"
        monkeypatch.setattr(workspace, "HOME", tmp_path)
        with pytest.raises(RuntimeError, match=f"found status {found}"):
            machine.use_server(start_missing=False)
        server.shutdown()


@pytest.mark.parametrize(
    ("proxy", "is_kept"),
    [
        ("http://me:SECRET@127.0.0.1:9", True),
        ("127.0.0.1:9", True),
        ("socks5://me:SECRET@127.0.0.1:9", False),
        ("socks://127.0.0.1:9", False),  # as a desktop sets it
        ("http://me:SECRET@h:abc", False),
    ],
)
@pytest.mark.parametrize("name", ["ALL_PROXY", "https_proxy"])
def test_a_proxy_that_prefect_cannot_use_is_left_out(
    name: str, proxy: str, is_kept: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even a call to this machine, which takes no proxy, would end in a traceback."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    os.environ[name] = proxy
    machine.check_environment()
    said = capsys.readouterr().err
    assert (name in os.environ, said == "") == (is_kept, is_kept)
    assert said.startswith("" if is_kept else f"{name}=")
    assert "SECRET" not in said
    assert machine.status(f"http://127.0.0.1:{free_port()}/api") == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql+asyncpg://me:SECRET@h:5432/db", "postgresql+asyncpg://h:5432/db"),
        ("'s3://KEY:SE/C?R@E#T@bucket/a'", "'s3://bucket/a'"),
        ("ssh://me@h/SHOWN, https://SECRET@h", "ssh://h/SHOWN, https://h"),
        ("see http://h:80/@SHOWN?SECRET)", "see http://h:80/@SHOWN?...)"),
        ("with url: /a?token=SECRET (Caused by", "with url: /a?... (Caused by"),
        ("Really?No. http://h:80/a and me@h", "Really?No. http://h:80/a and me@h"),
    ],
)
def test_secrets_in_addresses_are_not_shown(text: str, shown: str) -> None:
    """What a program says ends in logs, states and pages, which more people read than its settings."""
    assert redact(text) == shown


def test_of_a_call_only_the_host_is_logged() -> None:
    """The path of a web hook is its password; that of Prefect's API says what has failed."""
    os.environ[URL] = "http://127.0.0.1:4200/api"
    text = "Redirect response '302 Found' for url '{}'\nRedirect location: '{}'\nHTTP Request: POST {} \"HTTP"
    own, hook = "http://127.0.0.1:4200/api/flows", "https://hooks.example.org/T/SECRET"
    assert redact_calls(text.format(own, own, own)) == text.format(own, own, own)
    assert redact_calls(text.format(*[hook] * 3)) == text.format(*["https://hooks.example.org/..."] * 3)


def test_prefects_programs_log_no_secrets(tmp_path: Path) -> None:
    """The server logs each delivery that fails, with its traceback."""
    code = (
        "import httpx, logging; from prefect.logging.configuration import setup_logging; setup_logging()\n"
        "request = httpx.Request('POST', 'http://127.0.0.1:9/hooks/SECRET?token=SECRET')\n"
        "try: httpx.Response(404, request=request).raise_for_status()\n"
        "except httpx.HTTPError: logging.getLogger('prefect.server.x').exception('failed')"
    )
    env = {**os.environ, **machine.settings(machine.ADDRESS, "me:SECRET"), "PREFECT_HOME": str(tmp_path)}
    env["PYTHONPATH"] = str(toy.ROOT)
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "404 Not Found' for url 'http://127.0.0.1:9/...'" in done.stderr
    assert "SECRET" not in done.stderr


@pytest.mark.parametrize("words", ["follow banana", "run --parallel x", "run --remote x"])
def test_wrong_options_start_nothing(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make flow-follow` once started a server before it read the id."""
    monkeypatch.setattr(machine, "use_server", lambda **_: pytest.fail("it has asked for a server"))
    with pytest.raises(SystemExit):
        machine.run_command(machine.parser().parse_args(shlex.split(words)))
