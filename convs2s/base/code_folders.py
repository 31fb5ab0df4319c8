"""Folders from which code is loaded: used only if nobody but this user, and root, can change what is there.

Compiled code and pickles run as whoever loads them. A folder in which others may write, such as one of mode
1777 that all users of a machine share, would let them run code as this user.
"""

import errno
import functools
import os
import stat
import tempfile
import warnings
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MOST_LINKS = 40  # followed by the kernel


def describe_risk(path: Path, code: Path | None = None, links: int = 0) -> str | None:
    """Return how another user could change what is at a path, or None; it need not exist.

    In a folder with the sticky bit, such as /tmp, others cannot replace what is this user's.

    Args:
        code: the folder of this path, if code is run from there anyway: whoever may write in it is trusted.
        links: symbolic links that have been followed.

    Raises:
        OSError: if the path cannot be examined.
    """
    path = path.absolute()
    owners = {0, os.geteuid()}
    places = [*reversed(path.parents), path]
    allowed = 0
    if code is not None:
        status = code.stat()
        owners.add(status.st_uid)
        allowed = status.st_mode & OTHERS_WRITE
        places = [place for place in places if code in place.parents]
    for place in places:
        try:
            status = place.lstat()
        except FileNotFoundError:
            return None
        if status.st_uid not in owners:
            return f"{place} belongs to another user (its uid is {status.st_uid})"
        if stat.S_ISLNK(status.st_mode):
            if links == MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            target = place.parent / place.readlink() / path.relative_to(place)
            return describe_risk(target, links=links + 1)
        may_write = status.st_mode & OTHERS_WRITE & ~allowed
        is_sticky_parent = place != path and status.st_mode & stat.S_ISVTX
        if may_write and not is_sticky_parent:
            return f"others may write to {place} (its mode is {stat.S_IMODE(status.st_mode):o})"
    return None


def is_private(path: Path, code: Path | None = None) -> bool:
    """Return whether nobody else can change what is at a path; arguments as for `describe_risk`."""
    try:
        return describe_risk(path, code) is None
    except OSError:
        return False


def chosen_folder(variable: str) -> Path | None:
    """Return the folder that an environment variable names; None, with a warning, if it is not private."""
    value = os.environ.get(variable)
    if not value:
        return None
    try:
        risk = describe_risk(Path(value))
    except OSError as error:
        risk = str(error)
    if risk:
        warn_once(
            f"{variable} is not used: expected a folder that only you can change, as code in it is run, but "
            f"{risk}. Compiled code is kept in a folder of your own instead; to choose one, make it with "
            "mkdir -m 700."
        )
        return None
    return Path(value)


@functools.cache
def warn_once(message: str) -> None:
    """Warn, once in a process."""
    warnings.warn(message, stacklevel=3)


def user_cache() -> Path | None:
    """Return the folder for this user's caches; None for a user without a home."""
    # The method of pathlib fails without one.
    folder = Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"))  # noqa: PTH111
    return folder if folder.is_absolute() else None


def make_private_folder(folder: Path) -> None:
    """Make a folder that others cannot write, with its parents, whatever the umask is."""
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            path.mkdir(0o755, exist_ok=True)


def protect_torch_compile() -> None:
    """Have torch.compile keep code only where this user alone may write.

    By default it runs what it finds in /tmp/torchinductor_NAME, which any user may have made before.

    Raises:
        PermissionError: if there is no such place.
    """
    if os.environ.get("TRITON_CACHE_DIR") and chosen_folder("TRITON_CACHE_DIR") is None:
        del os.environ["TRITON_CACHE_DIR"]  # it is then within the other
    own = f"torchinductor_{os.geteuid()}"
    cache = user_cache()
    candidates = [
        chosen_folder("TORCHINDUCTOR_CACHE_DIR"),
        Path(tempfile.gettempdir(), own),
        cache and cache / own,
    ]
    for folder in filter(None, candidates):
        try:
            make_private_folder(folder)
        except OSError:
            continue
        if is_private(folder) and all(is_own(path) for path in folder.rglob("*")):
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
            return
    raise PermissionError(
        "train.compile: expected a folder for compiled code that only you can change, found none among "
        f"{', '.join(map(str, filter(None, candidates)))}. Set TORCHINDUCTOR_CACHE_DIR to one, made with "
        "mkdir -m 700."
    )


def is_own(path: Path) -> bool:
    """Return whether a file or folder is this user's or root's."""
    return path.lstat().st_uid in (0, os.geteuid())
