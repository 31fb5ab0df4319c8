"""Who may use the Prefect server: whoever can read the password in .prefect/, which only its owner can.

Prefect's API starts processes, so whoever may call it acts as the user who started server and workers.
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

held: list[socket.socket] = []  # ports that this process holds, so that no other user can take them


def make_home() -> None:
    """Make the folder of server and worker, its database and logs; nobody but the owner can open them."""
    HOME.mkdir(mode=0o700, exist_ok=True)
    HOME.chmod(0o700)  # older ones were open to all
    for name in ("prefect.db", "server.log", "worker.log"):
        (HOME / name).touch(mode=0o600)
        (HOME / name).chmod(0o600)


def make_password() -> str:
    """Return this clone's password, made at the first call; of two calls at once, both return the same."""
    with tempfile.NamedTemporaryFile("w", dir=HOME, encoding="ascii") as draft:  # only its owner can open it
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
            f"{PASSWORD}: found permissions {stat.S_IMODE(mode):o}, so that other users may know it. Wanted "
            "600: remove the file and run make flow-stop, and the next make flow makes another; in the clone "
            "of a remote worker: chmod 600."
        )
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        raise RuntimeError(
            f"{PASSWORD}: found something else than user:password. Remove it and run make flow-stop, and "
            "the next make flow makes another; in the clone of a remote worker, copy it again."
        )
    return text


def port_of(address: str) -> int:
    """Return the port of an address."""
    return int(address.split(":")[2].split("/", maxsplit=1)[0])


def share(port: int) -> socket.socket:
    """Bind a port of 127.0.0.1; on Linux, only processes of the same user can share it, if they ask to."""
    shared = socket.socket()
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    shared.bind(("127.0.0.1", port))
    return shared


@contextlib.contextmanager
def claim(port: int) -> Iterator[socket.socket]:
    """Bind a port as the only server on it: of two that shared it, each would get some of the calls.

    Raises a RuntimeError if another server has it, and with it UDP's port of that number, which none shares.
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
    """Hold the port of our server while this process lives, also when the server dies; tell whether we do.

    Nothing is done for a server elsewhere, of another user, or one that does not share its port.
    """
    with contextlib.suppress(OSError):
        if address.startswith("http://127.0.0.1:"):
            held.append(share(port_of(address)))
            return True
    return False
