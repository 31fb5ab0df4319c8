"""Copies of a training's checkpoints at an address that all machines see: it can go on from there elsewhere.

PLACE/ID/checkpoint-UPDATES.safetensors are as in the work folder: the last two, and those of the best epochs.
A place is a folder or any address that fsspec knows. If it is full or gone, training goes on, and the next
checkpoint is tried again. The newest whole one wins: half-written ones cannot be used, as in the work folder.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import fsspec  # type: ignore[import-untyped]

from convs2s.base.files import atomic_path
from convs2s.train.running.checkpoint import list_updates


class CheckpointCopies:
    """The copies of one training's checkpoints, which are in its `own` folder in the work folder."""

    def __init__(self, address: str, own: Path) -> None:
        self.own = own
        self.address = f"{address.rstrip('/')}/{own.name}"
        try:
            self.fs, self.root = fsspec.url_to_fs(self.address)
            self._make_folder()
        except Exception as error:  # each kind of place has its own
            raise OSError(
                f"run.checkpoints: {self.address} cannot be used: {error!r}. Expected a folder that exists "
                "(is it mounted?), or an fsspec address, that can be written."
            ) from error

    def _make_folder(self) -> None:
        """Make the training's folder, but not the place: it may only be unmounted."""
        if not self.fs.isdir(self.root):
            self.fs.mkdir(self.root, create_parents=False)

    def list_sizes(self) -> dict[str, int]:
        """Return the names of the files that are at the place, and their sizes."""
        self.fs.invalidate_cache()
        files = self.fs.ls(self.root, detail=True)
        return {file["name"].rpartition("/")[2]: file["size"] for file in files}

    def fetch(self, saved: Iterable[int]) -> str:
        """Copy all checkpoints to the work folder, if one is newer than those `saved`; return a message."""
        names = [name for name in self.list_sizes() if list_updates([name])]
        if max(list_updates(names), default=0) <= max(saved, default=0):
            return ""
        for name in names:
            with atomic_path(self.own / name) as path:
                self.fs.get_file(f"{self.root}/{name}", str(path))
        return f"The checkpoints are copied from {self.address}."

    def copy(self, checkpoints: list[Path]) -> None:
        """Copy those that are not there, and remove all others; if that fails, only print a warning."""
        try:
            self._make_folder()
            sizes = self.list_sizes()
            for path in checkpoints:
                if sizes.pop(path.name, 0) != path.stat().st_size:
                    self.fs.put_file(str(path), f"{self.root}/{path.name}")
            for name in sizes:
                self.fs.rm_file(f"{self.root}/{name}")
        except Exception as error:
            print(
                f"Warning: run.checkpoints: {self.address} has not got the newest checkpoint: {error!r}. "
                "Training goes on; the next checkpoint is tried again.",
                file=sys.stderr,
                flush=True,
            )


def remove_copies(address: str) -> None:
    """Remove a training's folder at a place; if that fails, only print a warning."""
    try:
        fs, root = fsspec.url_to_fs(address)
        fs.rm(root, recursive=True)
    except Exception as error:
        print(f"Warning: {address} cannot be removed ({error!r}).", file=sys.stderr)
