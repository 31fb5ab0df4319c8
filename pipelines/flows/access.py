"""Access to the Prefect server: a password in .prefect/ that only the owner of the clone can read.

Prefect's API starts processes, so anyone who can call it acts as the user who started the server and workers.
"""

import contextlib
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator

from pipelines.flows.workspace import ROOT

HOME = ROOT / ".prefect"
CLIENT = "PREFECT_API_AUTH_STRING"
PASSWORD = HOME / "password"  # as Prefect's clients and pages take it: user:password

held: list[socket.socket] = []  # ports kept open by this process, so that no other user can bind them


def make_home() -> None:
    """Create .prefect/ with the database and the logs, readable only by the owner."""
    HOME.mkdir(mode=0o700, exist_ok=True)
    HOME.chmod(0o700)  # earlier versions left it open to everyone
    for name in ("prefect.db", "server.log", "worker.log"):
        (HOME / name).touch(mode=0o600)
        (HOME / name).chmod(0o600)


def make_password() -> str:
    """Return this clone's password, creating it on the first call; concurrent calls return the same one."""
    with tempfile.NamedTemporaryFile("w", dir=HOME, encoding="ascii") as draft:  # created with mode 600
        draft.write(f"convs2s:{secrets.token_urlsafe(24)}\n")
        draft.flush()
        with contextlib.suppress(FileExistsError):
            PASSWORD.hardlink_to(draft.name)
    return read_password()


def read_password() -> str:
    """Return the password in .prefect/, empty if there is none.

    Raises a RuntimeError if other users can read it, or it is not of the form user:password.
    """
    try:
        mode, text = PASSWORD.stat().st_mode, PASSWORD.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise RuntimeError(
            f"{PASSWORD}: found permissions {stat.S_IMODE(mode):o}, so other users may have read it. Wanted "
            "600: remove the file and run make flow-stop; the next make flow creates a new one. In the clone "
            "of a remote worker: chmod 600."
        )
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        raise RuntimeError(
            f"{PASSWORD}: found something other than user:password. Remove it and run make flow-stop; "
            "the next make flow creates a new one. In the clone of a remote worker, copy it again."
        )
    return text


def port_of(address: str) -> int:
    """Return the port of an address."""
    return int(address.split(":")[2].split("/", maxsplit=1)[0])


def share(port: int) -> socket.socket:
    """Bind a port of 127.0.0.1 with SO_REUSEPORT, which Linux lets only processes of the same user share."""
    shared = socket.socket()
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    shared.bind(("127.0.0.1", port))
    return shared


@contextlib.contextmanager
def claim(port: int) -> Iterator[socket.socket]:
    """Bind a port as its only server: two that shared it would each get some of the calls.

    The UDP port of the same number, which is never shared, serves as the lock. Raises a RuntimeError if
    either port is taken.
    """
    with contextlib.ExitStack() as stack:
        try:
            only = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            only.bind(("127.0.0.1", port))
            shared = stack.enter_context(share(port))
        except OSError as error:
            raise RuntimeError(
                f"port {port} is taken ({error.strerror}), perhaps by the Prefect server of another clone. "
                f"Choose another: make flow FLOW_PORT={port + 1}, or set PREFECT_API_URL to use that server."
            ) from None
        yield shared


def hold(address: str) -> bool:
    """Keep the port of our server bound while this process lives, even if the server dies; return success.

    Does nothing if the server is on another machine, belongs to another user, or does not share its port.
    """
    with contextlib.suppress(OSError):
        if address.startswith("http://127.0.0.1:"):
            held.append(share(port_of(address)))
            return True
    return False
