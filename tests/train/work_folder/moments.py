"""What is on disk at each moment of a training."""

import builtins
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Content = dict[Path, bytes | None]
"""The bytes of each file; None for a folder."""


class Moments:
    """What is on disk before each operation that changes something in these folders.

    A kill leaves exactly this: unflushed buffers are lost, and no handler runs.
    """

    def __init__(self, patch: pytest.MonkeyPatch, *folders: Path) -> None:
        self.folders = folders
        self.names = list[str]()
        self.contents: list[Content] = []
        writes = lambda _, mode="r", *__, **___: bool(set(mode) & set("wax"))  # noqa: E731
        for module, name, changes in (
            (os, "mkdir", lambda path, *_, **__: not Path(path).exists()),
            (os, "replace", lambda *_, **__: True),
            (os, "unlink", lambda path, dir_fd=None, **_: dir_fd is not None or Path(path).exists()),
            (os, "rmdir", lambda *_, **__: True),
            (io, "open", writes),
            (builtins, "open", writes),
        ):
            patch.setattr(module, name, self.watched(name, getattr(module, name), changes))

    def watched(
        self, name: str, operation: Callable[..., Any], changes: Callable[..., bool]
    ) -> Callable[..., Any]:
        def call(path: Any, *args: Any, **options: Any) -> Any:
            # Operations relative to an open folder are from shutil.rmtree.
            ours = options.get("dir_fd") is not None or Path(*Path(path).parts[:1]) in self.folders
            if ours and changes(path, *args, **options):
                self.names.append(f"{name} {path}")
                self.contents.append(content(*self.folders))
            return operation(path, *args, **options)

        return call


def content(*folders: Path) -> Content:
    """Return the contents of these folders."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*")) if path.exists()]
    return {path: None if path.is_dir() else path.read_bytes() for path in sorted(paths)}


def put_back(found: Content, *folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    for path, data in found.items():
        if data is None:
            path.mkdir()
        else:
            path.write_bytes(data)
