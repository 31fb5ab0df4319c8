"""What a stage reads is what its run's snapshot says, and stays so until the stage ends.

Values come from the snapshot (stage snapshot), so an edit of params.yaml is for the next run. Code and other
input files are read while the stage runs. If one of them is written meanwhile, even if it is put back, the
result may be of either version, and the stage fails at its end: nothing is recorded.
"""

import contextlib
import functools
import os
import re
import stat
import sys
import threading
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from convs2s.base.files import read_lines
from convs2s.config.load import load_params
from convs2s.config.params import Params
from pipelines.stages._code import Module, files_of, param_lines

SECONDS = 1.0  # between looks at the files
PARAMS = Path("params.yaml")
WARNINGS = {
    True: "This run goes on with the values that it began with, and its results are recorded with them. For "
    "the new ones, run the same command again.",
    False: "This stage will end without a result: it may have read either version.",
}
"""What a change means, by whether it is of params.yaml."""
Stamp = tuple[int, int, int]


@contextlib.contextmanager
def guard(stage: str, item: str | None, snapshot: Path) -> Iterator[Params]:
    """Yield the values that a stage is to compute with; check at the end that its inputs are still the same.

    Meanwhile, another thread warns as soon as a file changes.

    Args:
        stage: name of its module.
        item: its name in dvc.yaml; None if DVC has not started it, so that nothing will be recorded.
        snapshot: the stage's file, written by stage snapshot.

    Raises:
        ValueError: if values, code or libraries are not those of the snapshot, or a file was written while
            the stage ran.
    """
    values = snapshot.with_name("params.yaml")
    lines, params = list(read_lines(snapshot)), load_params(values)
    # These stamps are taken before code is checked and imported, and other files are checked.
    code = [path_of(line.split(" ")[2]) for line in lines if line.startswith("code ")]
    named = [path for line in lines for path in files_of(params).get(line.split(" ")[1], ())]
    stamps = stamps_of([*code, *named])
    check_snapshot(lines, params, snapshot.with_name("digests.txt"))
    stamps |= stamps_of([values, *dependencies(item, params)] if item else [])
    watched, over = stamps | stamps_of([PARAMS]), threading.Event()
    threading.Thread(target=warn_of_changes, args=(stage, watched, over), daemon=True).start()
    try:
        yield params
    except Exception as error:
        if changed := find_written(stamps):
            error.add_note(
                f"{', '.join(map(str, changed))} changed while the stage ran, which may be the reason."
            )
        raise
    finally:
        over.set()
    if changed := find_written(stamps):
        raise ValueError(
            f"{', '.join(map(str, changed))} changed while the stage ran. Its result may be of either "
            "version, so it is not recorded. Run the same command again; a training continues from its last "
            "checkpoint if code and data are as before."
        )


def path_of(module: str) -> Path:
    """Return the file of a module or package of the project."""
    path = Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def check_snapshot(lines: Iterable[str], params: Params, digests: Path) -> None:
    """Check that what is here is what the stage will be recorded with; raise a ValueError if not.

    Args:
        lines: of the stage's file in the snapshot.
        params: the values of the snapshot.
        digests: digests.txt of the snapshot. Only files that have changed at all are parsed, which is slow.
    """
    known = dict(line.split(" ") for line in read_lines(digests))
    changed = []
    for line in lines:
        kind, first, second = line.split(" ", 2)
        if kind == "param":
            found, name = param_lines(params, [first])[0], first
        elif kind == "library":
            found, name = f"library {version(second)} {second}", second
        else:
            path = path_of(second)
            found, name = f"code {digest_of(path, known)} {second}", str(path)
        if found != line:
            changed.append(name)
    if changed:
        raise ValueError(
            f"{', '.join(changed)} changed after this run had begun, but the stage would be recorded with "
            "the snapshot. Run the same command again (before a single stage: dvc repro snapshot). If the "
            "change is undone, results so far come from DVC's cache."
        )


def digest_of(path: Path, known: dict[str, str]) -> str | None:
    """Return the digest of a module, which is known for some MD5 hashes; None if it cannot be run."""
    module = Module(path)
    with contextlib.suppress(OSError, SyntaxError):
        return known.get(module.checksum) or module.digest
    return None


def dependencies(item: str, params: Params) -> list[Path]:
    """Return the paths that a stage item depends on according to dvc.yaml."""
    name, _, value = item.rpartition(":")[2].partition("@")

    def insert(place: re.Match[str]) -> str:
        keys = re.findall(r"\w+", place[1])
        if keys[0] == "item":
            return value
        found: Any = params.model_dump()
        return str(functools.reduce(lambda at, key: at[int(key) if key.isdigit() else key], keys, found))

    deps = YAML(typ="safe").load(Path("dvc.yaml"))["stages"][name]["deps"]
    return [Path(re.sub(r"\$\{(.*?)\}", insert, dep)) for dep in deps]


def stamps_of(paths: Iterable[Path]) -> dict[Path, Stamp | None]:
    """Return the stamp of each file, and of each file in a folder."""
    return {file: stamp(file) for path in paths for file in (walk(path) if path.is_dir() else [path])}


def walk(folder: Path) -> Iterator[Path]:
    """Yield the folder itself, whose time changes with its list of files, and everything in it."""
    for place, _, names in os.walk(folder, followlinks=True):
        yield Path(place)
        yield from (Path(place, name) for name in names)


def stamp(path: Path) -> Stamp | None:
    """Return times of modification and change in nanoseconds, and size; None if there is no such file.

    Only the time of change shows that a file was moved away and back, or put back with its old time. A file
    linked to DVC's cache is read-only, and every further link to it changes that time: its inode must do.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    is_linked = found.st_mode == stat.S_IFREG | 0o444
    return found.st_mtime_ns, found.st_ino if is_linked else found.st_ctime_ns, found.st_size


def find_written(stamps: dict[Path, Stamp | None]) -> list[Path]:
    """Return the files that are no longer as they were."""
    return [path for path, before in stamps.items() if stamp(path) != before]


def warn_of_changes(stage: str, stamps: dict[Path, Stamp | None], over: threading.Event) -> None:
    """Warn while a stage runs, once for each file, whose stamp is then removed."""
    while not over.wait(SECONDS):
        for path in find_written(stamps):
            del stamps[path]
            message = f"{stage}: warning: {path} has changed. {WARNINGS[path == PARAMS]}"
            print(f"\n{message}", file=sys.stderr, flush=True)  # on a new line, after a bar
