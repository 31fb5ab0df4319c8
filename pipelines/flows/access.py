"""Access to the Prefect server: a password in .prefect/ that only the owner of the clone can read.

Prefect's API starts processes, so anyone who can call it acts as the user who started the server and workers.
"""

import contextlib
import secrets
import stat

from pipelines.flows.workspace import ROOT

HOME = ROOT / ".prefect"
PASSWORD = HOME / "password"  # as Prefect's clients and pages take it: user:password


def make_home() -> None:
    """Create .prefect/ for the database and the logs, readable only by the owner."""
    HOME.mkdir(mode=0o700, exist_ok=True)
    HOME.chmod(0o700)


def make_password() -> str:
    """Return this clone's password, creating it on the first call."""
    with contextlib.suppress(FileExistsError), PASSWORD.open("x", encoding="ascii") as file:
        PASSWORD.chmod(0o600)
        file.write(f"convs2s:{secrets.token_urlsafe(24)}\n")
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
            f"{PASSWORD}: expected permissions 600, found {stat.S_IMODE(mode):o}, so other users may have "
            "read it. Remove the file and run make flow-stop; the next make flow creates a new one. In the "
            "clone of a remote worker: chmod 600."
        )
    if not all(text.partition(":")):
        raise RuntimeError(
            f"{PASSWORD}: expected user:password, found something else. Remove it and run make flow-stop; "
            "the next make flow creates a new one. In the clone of a remote worker, copy it again."
        )
    return text
