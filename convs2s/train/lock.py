"""One training at a time per work folder, even if an earlier one has outlived the process that started it."""

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
    """Hold the lock of a folder, created if missing; if another process holds it, say which and wait.

    The kernel releases the lock when its holder dies, however it dies. Child processes of the holder do not
    inherit it. On file systems without locks, a warning is printed instead.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+", encoding="utf-8", errors="replace") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip() or "another process"
            print(f"{folder} is in use by {holder}. Waiting for it to exit.", file=sys.stderr, flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            print(
                f"Warning: {folder} cannot be locked ({error.strerror}). Do not start another training in it "
                "while this one runs.",
                file=sys.stderr,
            )
        stream.truncate(0)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        stream.write(f"process {os.getpid()} on {socket.gethostname()}, since {since}\n")
        stream.flush()
        yield
