"""Copies of a training's checkpoints at an address that all machines see: it can go on from there elsewhere.

    PLACE/ID/checkpoint-UPDATES.safetensors  as in the work folder: the last two, and those of the best epochs
    PLACE/ID/cost.json                       as in the work folder

A place is a folder or any address that fsspec knows. Copies are made in the background, under a temporary
name. If the place is full or gone, training goes on, and the next checkpoint is tried again. The newest one
wins: of two trainings with the same settings, the one that is behind copies for nothing.
"""

import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import fsspec  # type: ignore[import-untyped]

from convs2s.base.files import atomic_path
from convs2s.train.checkpoint import list_updates

PART = ".part"


class Place:
    """The copies of one training's checkpoints.

    Args:
        address: of the place.
        own: the training's folder in the work folder.

    Raises:
        OSError: if the place cannot be used.
    """

    def __init__(self, address: str, own: Path) -> None:
        self.own, self.address = own, f"{address.rstrip('/')}/{own.name}"
        self.thread = ThreadPoolExecutor(1)
        self.copying = Future[None]()
        self.copying.set_result(None)
        try:
            self.fs, self.root = fsspec.url_to_fs(self.address)
            if "file" in self.fs.protocol and not Path(self.root).parent.is_dir():
                raise FileNotFoundError(f"there is no folder {address}; is it mounted?")
            self._make_folder()
        except Exception as error:  # each kind of place has its own
            raise OSError(
                f"run.checkpoints: {self.address} cannot be used: {explain(error)}. Expected a folder that "
                "exists, or an fsspec address, that can be written."
            ) from error

    def _make_folder(self) -> None:
        """Make the training's folder, but not the place: it may only be unmounted."""
        if not self.fs.isdir(self.root):
            self.fs.mkdir(self.root, create_parents=False)

    def list_names(self) -> list[str]:
        """Return the names of the files that are at the place."""
        self.fs.invalidate_cache()
        return [path.rpartition("/")[2] for path in self.fs.ls(self.root, detail=False)]

    def fetch(self, saved: Iterable[int]) -> str:
        """Copy all checkpoints to the work folder, if one is newer than those `saved`; return a message.

        Raises:
            OSError: if the place or the work folder fails.
        """
        try:
            names = [name for name in self.list_names() if not name.endswith(PART)]
            if max(list_updates(names), default=0) <= max(saved, default=0):
                return ""
            for name in names:
                with atomic_path(self.own / name) as path:
                    self.fs.get_file(f"{self.root}/{name}", str(path))
        except Exception as error:
            raise OSError(f"run.checkpoints: {self.address} cannot be read: {explain(error)}.") from error
        return f"The checkpoints are copied from {self.address}."

    def copy(self, files: list[Path], *, wait: bool = False) -> None:
        """Copy files of the work folder in the background, unless a copy is under way.

        Args:
            files: those needed to go on from here, the newest checkpoint last.
            wait: for a copy under way, and for this one.
        """
        if wait:
            self.copying.result()
        if self.copying.done():
            self.copying = self.thread.submit(self._copy, files)
        if wait:
            self.copying.result()

    def _copy(self, files: list[Path]) -> None:
        try:
            self._make_folder()
            before = self.list_names()
            for path in files:
                # A checkpoint never changes, but a damaged newest one may be there.
                if path.name not in before or not list_updates([path.name]) or path == files[-1]:
                    self.fs.put_file(str(path), f"{self.root}/{path.name}{PART}")
                    self.fs.mv(f"{self.root}/{path.name}{PART}", f"{self.root}/{path.name}")
            newest = list_updates([files[-1].name])[0]
            for name in {*before} - {path.name for path in files}:
                if max(list_updates([name]), default=0) < newest:
                    self.fs.rm_file(f"{self.root}/{name}")
        except Exception as error:
            print(f"Warning: run.checkpoints: {self.address} has not got the newest checkpoint: "
                  f"{explain(error)}. Training goes on; the next checkpoint is tried again.",
                  file=sys.stderr, flush=True)  # fmt: skip


def explain(error: Exception) -> str:
    """Return the reason of an error of any kind of place, on one line."""
    return " ".join((str(error) or type(error).__name__).split()).removesuffix(".")


def remove_copies(address: str) -> None:
    """Remove a training's folder at a place; if that fails, only print a warning."""
    try:
        fs, root = fsspec.url_to_fs(address)
        fs.rm(root, recursive=True)
    except Exception as error:
        print(f"Warning: {address} cannot be removed ({explain(error)}).", file=sys.stderr)
