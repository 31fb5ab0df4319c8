"""One training at a time per work folder, even if the process that started an earlier one is gone."""

import contextlib
import errno
import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, made if missing; wait while another process holds it, and say which.

    The kernel releases the lock when its holder dies, however it dies. Programs that the holder starts do not
    inherit it. Where the file system has no locks, a warning is printed instead.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+", encoding="utf-8", errors="replace") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip() or "another process"
            print(f"{folder} is in use by {holder}. Waiting until it ends.", file=sys.stderr, flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            print(
                f"Warning: {folder} cannot be locked ({error.strerror}). Start no second training in it "
                "while this one runs.",
                file=sys.stderr,
            )
        stream.truncate(0)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        stream.write(f"process {os.getpid()} on {socket.gethostname()}, since {since}\n")
        stream.flush()
        yield
