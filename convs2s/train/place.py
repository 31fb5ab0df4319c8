"""A place that all machines see, with copies of a training's checkpoints: it can go on from there elsewhere.

    PLACE/ID/checkpoint-UPDATES.safetensors  as in the work folder: the last two, and those of the best epochs
    PLACE/ID/cost.json                       as in the work folder
    PLACE/ID/writer.json                     the training that writes here, for as long as it does

A place is a folder or any address that fsspec knows. Copies are made in the background, under a temporary
name. If the place is full or gone, training goes on, and the next checkpoint is tried again.

Not all places have locks, so the one that writes here renews `writer.json` every few seconds. Whoever finds
this file watches it, which needs no clock that machines share: once it stays the same, its writer is dead.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

import fsspec  # type: ignore[import-untyped]

from convs2s.base.files import atomic_path
from convs2s.train.checkpoint import checkpoint_name

BEAT = 10.0  # seconds between renewals
SILENCE = 35.0  # seconds without a renewal, after which the writer counts as dead
SETTLE = 2.0  # seconds in which another one that starts at the same time would overwrite us
POLL = 1.0
ANSWER = 55.0  # seconds in which a place must be ours, or be refused
CHUNK = 1 << 24  # bytes
PREFIX, SUFFIX = checkpoint_name("*").split("*")
WRITER = "writer.json"


class Place:
    """The copies of one training's checkpoints, while that training writes them."""

    def __init__(self, address: str, own: Path) -> None:
        """Claim the folder of a training, `own` in the work folder, at this address.

        Raises:
            OSError: if the place cannot be written, does not answer, or another training writes there.
        """
        self.own, self.address = own, join(address, own.name)
        self.token = {"host": socket.gethostname(), "process": os.getpid(), "training": uuid.uuid4().hex}
        self.beats, self.taken = 0, ""  # by whom
        self.ended = threading.Event()
        self.copying = threading.Thread()
        self.waiting: list[Path] = []  # files whose copy was put off
        self.beating = threading.Thread(target=self._beat, daemon=True)
        claimed = Future[None]()

        def claim() -> None:
            try:
                self._claim(address)
                claimed.set_result(None)
            except Exception as error:  # each kind of place has its own
                claimed.set_exception(error)

        threading.Thread(target=claim, daemon=True).start()
        try:
            claimed.result(ANSWER)
        except Exception as error:
            reason = "it does not answer" if isinstance(error, TimeoutError) else explain(error)
            raise OSError(
                f"run.checkpoints: {self.address} cannot be used on {socket.gethostname()}: {reason}. "
                "Expected a folder or an fsspec address that can be written, and no other training there."
            ) from error
        self.beating.start()

    def _claim(self, address: str) -> None:
        self.fs, self.root = fsspec.url_to_fs(self.address)
        if "file" in self.fs.protocol and not self.fs.isdir(self.root.rpartition("/")[0]):
            raise FileNotFoundError(f"there is no folder {address}; is it mounted?")
        found, deadline = self._read(), time.monotonic() + SILENCE
        if found:
            print(f"{spell(found)} was the last to write to {self.address}; checking that it has ended.",
                  file=sys.stderr, flush=True)  # fmt: skip
        while found and time.monotonic() < deadline:
            time.sleep(POLL)
            if (now := self._read()) and now != found:
                raise OSError(f"{spell(now)} writes there")
            found = now
        self._write()
        time.sleep(SETTLE)
        if (now := self._read()) != self._writer():
            raise OSError(f"{spell(now)} writes there")

    def _writer(self) -> dict[str, Any]:
        return {**self.token, "beats": self.beats}

    def _read(self) -> dict[str, Any]:
        """Return who writes here; empty if nobody does."""
        self.fs.invalidate_cache()
        try:
            return dict(json.loads(self.fs.cat_file(f"{self.root}/{WRITER}")))
        except FileNotFoundError:
            return {}

    def _write(self) -> None:
        with self._temporary(WRITER) as name:
            self.fs.pipe_file(name, json.dumps(self._writer()).encode())

    def _beat(self) -> None:
        while not self.ended.wait(BEAT):
            with contextlib.suppress(Exception):  # copying reports what is wrong
                found = self._read()
                if found and found["training"] != self.token["training"]:
                    self.taken = spell(found)
                    return
                self.beats += 1
                self._write()

    @contextlib.contextmanager
    def _temporary(self, name: str) -> Iterator[str]:
        """Yield a name to write a file to; if all went well, rename it."""
        if not self.fs.isdir(self.root):
            self.fs.mkdir(self.root, create_parents=False)
        temporary = f"{self.root}/.{name}.{self.token['training']}.part"
        try:
            yield temporary
            self.fs.mv(temporary, f"{self.root}/{name}")
        except BaseException:
            with contextlib.suppress(Exception):
                self.fs.rm_file(temporary)
            raise

    def _list(self) -> list[str]:
        """Return the names of the files that are here."""
        self.fs.invalidate_cache()
        return [path.rpartition("/")[2] for path in self.fs.ls(self.root, detail=False)]

    def fetch(self, saved: Iterable[int]) -> str:
        """Copy all checkpoints to the work folder, if one is newer than those `saved` there.

        Returns:
            A message; empty if nothing was copied.

        Raises:
            OSError: if the place or the work folder fails.
        """
        try:
            names = self._list()
            for name in names:  # of a dead writer
                if name.endswith(".part"):
                    self.fs.rm_file(f"{self.root}/{name}")
            there = list_updates(names)
            if not there or there[-1] <= max(saved, default=0):
                return ""
            # A file that is here already may come from another kind of machine, and differ in its last bits.
            for name in (*map(checkpoint_name, there), *({"cost.json"} & {*names})):
                with atomic_path(self.own / name) as path:
                    self.fs.get_file(f"{self.root}/{name}", str(path))
        except Exception as error:
            raise OSError(f"run.checkpoints: {self.address} cannot be read: {explain(error)}.") from error
        return f"The checkpoints are copied from {self.address}."

    def copy(self, files: list[Path]) -> None:
        """Copy files of the work folder in the background, the newest last, unless a copy is under way.

        Raises:
            OSError: if another training has taken the place.
        """
        if self.taken:
            raise OSError(
                f"run.checkpoints: {self.taken} has taken {self.address}, to which this process on "
                f"{self.token['host']} had not written for {SILENCE:.0f} s. Training goes on there: stop one."
            )
        self.waiting = files
        if not self.copying.is_alive():
            self.waiting = []
            # Open files can be read to their end even when newer checkpoints have replaced them.
            streams = {path.name: path.open("rb") for path in files}
            self.copying = threading.Thread(target=self._copy, args=(streams,), daemon=True)
            self.copying.start()

    def wait(self) -> None:
        """Wait until the newest checkpoint is here, or has failed to be."""
        while self.copying.is_alive() or self.waiting:
            self.copying.join()
            if self.waiting:
                self.copy(self.waiting)

    def _copy(self, streams: dict[str, IO[bytes]]) -> None:
        try:
            newest, there = list(streams)[-1], list[str]()
            with contextlib.suppress(FileNotFoundError):  # it was gone for a while, and may be back
                there = self._list()
            for name, stream in streams.items():
                # A damaged newest one may have been here before.
                if name not in there or not name.startswith(PREFIX) or name == newest:
                    with self._temporary(name) as temporary, self.fs.open(temporary, "wb") as file:
                        while chunk := stream.read(CHUNK):
                            if self.ended.is_set():
                                raise InterruptedError
                            file.write(chunk)
            now = list_updates([newest])[0]
            older = [n for n in list_updates(there) if n < now][:-1]
            for name in {*map(checkpoint_name, older)} - {*streams}:
                self.fs.rm_file(f"{self.root}/{name}")
        except InterruptedError:
            pass
        except Exception as error:
            print(f"Warning: run.checkpoints: {self.address} has not got the newest checkpoint: "
                  f"{explain(error)}. Training goes on; the next checkpoint is tried again.",
                  file=sys.stderr, flush=True)  # fmt: skip
        finally:
            for stream in streams.values():
                stream.close()

    def close(self) -> None:
        """End copying, and let others write here."""
        self.ended.set()
        for thread in (self.copying, self.beating):
            if thread.ident is not None:
                thread.join(ANSWER)
        if not self.taken:
            with contextlib.suppress(Exception):  # then it is found to be silent
                self.fs.rm_file(f"{self.root}/{WRITER}")


def join(address: str, name: str) -> str:
    """Return the address of a training's folder at a place."""
    return f"{address.rstrip('/')}/{name}"


def list_updates(names: Iterable[str]) -> list[int]:
    """Return the numbers of updates in the names of checkpoints, in ascending order."""
    found = (name.removeprefix(PREFIX).removesuffix(SUFFIX) for name in names)
    return sorted(int(number) for number in found if number.isdecimal())


def spell(writer: dict[str, Any]) -> str:
    """Return the name of the training that writes to a place."""
    return f"a training on {writer.get('host')}, process {writer.get('process')},"


def explain(error: BaseException) -> str:
    """Return the reason of an error, of which each kind of place has its own."""
    return " ".join((str(error) or type(error).__name__).split()).removesuffix(".")


def remove_copies(address: str) -> None:
    """Remove a training's folder at a place; if that fails, only print a warning."""
    try:
        fs, root = fsspec.url_to_fs(address)
        fs.rm(root, recursive=True)
    except Exception as error:
        print(f"Warning: {address} cannot be removed ({explain(error)}).", file=sys.stderr)
