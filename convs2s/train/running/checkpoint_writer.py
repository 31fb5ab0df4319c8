"""Beside a GPU, a thread writes checkpoints while training goes on: it only waits until tensors are copied.

On disk nothing is different: one checkpoint is written at a time, in the order in which they were taken. The
next one waits until the last one is copied, too. But when a signal ends the training, time may be short: then
it is written first, and copied after the last one.

On a CPU, training waits: the thread would take a core from threads that compute and wait for one another.
That gained nothing, and some updates took eight times as long.
"""

import threading
from types import TracebackType

from convs2s.train.running.checkpoint import HostMemory, Snapshot
from convs2s.train.running.checkpoint_copies import CheckpointCopies
from convs2s.train.running.work_folder import WorkFolder
from convs2s.train.training import Training


class CheckpointWriter:
    """Saves a training's checkpoints in its work folder, and their copies; leaving it waits for the last one.

    The caller holds the folder's lock for as long as this is used.

    Args:
        in_thread: whether training goes on while a checkpoint is written, which needs the memory for one more
            copy of weights and buffers.
    """

    def __init__(self, folder: WorkFolder, copies: CheckpointCopies | None, in_thread: bool) -> None:
        self._folder, self._copies = folder, copies
        self._memory = HostMemory() if in_thread else None
        self._thread: threading.Thread | None = None
        self._written = threading.Event()
        self._written.set()
        self._error: BaseException | None = None

    def __enter__(self) -> "CheckpointWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.wait()
            return
        self._join()
        if self._error is not None:
            error.add_note(f"The last checkpoint could not be saved: {self._error}")

    def save(self, training: Training, *, is_last: bool = False) -> None:
        """Save the training's state, or let the thread write it once the last one is written and copied.

        Args:
            is_last: do not wait for the copy.

        Raises:
            OSError: if it, or the last one, could not be written.
        """
        self.wait(for_copies=not is_last)
        kept = self._folder.list_kept(training)
        copying = self._thread if self._thread is not None and self._thread.is_alive() else None
        if copying is not None:
            kept |= {*self._folder.list_saved()}
        snapshot = Snapshot.take(training, self._folder.prints, self._memory)
        self._written.clear()
        if self._memory is None:
            self._write(snapshot, kept, None)
            self.check()
            return
        # A daemon, so that a second Ctrl-C, which ends `wait`, ends the process, too.
        self._thread = threading.Thread(
            target=self._write, args=(snapshot, kept, copying), name="checkpoint", daemon=True
        )
        self._thread.start()

    def wait(self, *, for_copies: bool = True) -> None:
        """Wait until all that was saved is on disk and, if wanted, copied; errors as `check`."""
        try:
            if for_copies:
                self._join()
            else:
                self._written.wait()
        except KeyboardInterrupt:
            self._thread = None  # leaving does not wait for it either
            raise
        self.check()

    def check(self) -> None:
        """Raise the thread's error, if it has had one: an OSError if the checkpoint cannot be written."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _write(self, snapshot: Snapshot, kept: set[int], copying: threading.Thread | None) -> None:
        """Write a checkpoint, and copy all, once another thread has copied those before."""
        try:
            self._folder.write(snapshot, kept)
        except BaseException as error:  # whatever it is, `check` raises it
            self._error = error
            return
        finally:
            self._written.set()
        try:
            if copying is not None:
                copying.join()
            if self._copies is not None:
                saved = self._folder.list_saved()
                self._copies.copy([self._folder.checkpoint(updates) for updates in saved])
        except BaseException as error:
            self._error = error
