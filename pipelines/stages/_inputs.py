"""What a stage reads is what its run's snapshot says, and stays so until the stage ends.

Values come from the snapshot (stage snapshot), so an edit of params.yaml is for the next run. Code and other
input files are read while the stage runs. If one of them is written meanwhile, even if it is put back, the
result may be of either version, and the stage fails at its end: nothing is recorded.
"""

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from convs2s.config.load import dotted, load_params
from convs2s.config.params import Params
from convs2s.text.corpus.files import read_lines
from pipelines.stages._code import Module, param_lines

SECONDS = 1.0  # between looks at the files
SHOWN = 5  # maximum number of files or values in a message
Stamp = tuple[int, int, int]


@contextlib.contextmanager
def unchanged(stage: str, item: str | None, snapshot: Path) -> Iterator[Params]:
    """Yield the values that a stage is to compute with; check at the end that its inputs are still the same.

    Meanwhile, another thread warns as soon as a file changes.

    Args:
        stage: name of its module.
        item: its name in dvc.yaml; None if DVC has not started it, so that nothing will be recorded.
        snapshot: the stage's file, written by stage snapshot.

    Raises:
        ValueError: if the code is not that of the snapshot, or a file was written while the stage ran.
    """
    code, clone = code_of(snapshot), Path.cwd()
    stamps = stamps_of(code)  # before the code is checked and imported
    check_code(code, snapshot.with_name("files.txt"))
    values = snapshot.with_name("params.yaml")
    params = load_params(values)
    check_values(params, snapshot)
    stamps |= stamps_of([values, *dependencies(item, params)] if item else [])
    over = threading.Event()
    watcher = threading.Thread(target=watch, args=(stage, params, stamps, over), daemon=True)
    watcher.start()
    try:
        yield params
    except Exception as error:
        check_place(clone)
        if changed := written(stamps):
            error.add_note(f"{listed(changed)} changed while the stage ran, which may be the reason.")
        raise
    finally:
        over.set()
    check_place(clone)
    if changed := written(stamps):
        raise ValueError(
            f"{listed(changed)} changed while the stage ran. Its result may be of either version, so it is "
            "not recorded. Run the same command again; a training continues from its last checkpoint if code "
            "and data are as before."
        )


def check_place(clone: Path) -> None:
    """Check that the clone is still where it was; raise a FileNotFoundError if not."""
    if not (clone.is_dir() and clone.samefile(Path())):  # compiled code may be written to the old place
        raise FileNotFoundError(
            f"{clone} was renamed or removed while the stage ran, so DVC cannot record its result. Run the "
            "same command again in its new place: finished stages and checkpoints are kept."
        )


def code_of(snapshot: Path) -> dict[Path, str]:
    """Return the digest of each module that a stage can execute, by path."""
    found = {}
    for line in read_lines(snapshot):
        kind, digest, name = line.split(" ", 2)
        if kind != "code":
            continue
        path = Path(*name.split("."))
        found[path / "__init__.py" if path.is_dir() else path.with_suffix(".py")] = digest
    return found


def check_values(params: Params, snapshot: Path) -> None:
    """Check that values are those that the stage will be recorded with; raise a ValueError if not."""
    lines = [line for line in read_lines(snapshot) if line.startswith("param ")]
    if lines != param_lines(params, [line.split(" ")[1] for line in lines]):
        raise ValueError(
            f"{snapshot.with_name('params.yaml')} and {snapshot} have different values; one of them has been "
            "edited. Edit only params.yaml, and take the snapshot again: dvc repro -f snapshot"
        )


def check_code(code: dict[Path, str], files: Path) -> None:
    """Check that code is that of the snapshot; raise a ValueError if not.

    Args:
        code: digests by path.
        files: files.txt of the snapshot. Only files that have changed at all are parsed, which is slow.
    """
    known = dict(line.rsplit(" ", 1)[::-1] for line in read_lines(files))
    changed = []
    for path, digest in code.items():
        with contextlib.suppress(OSError, SyntaxError, UnicodeDecodeError):
            module = Module(path)
            if known.get(str(path)) == f"{module.checksum} {digest}" or module.digest == digest:
                continue
        changed.append(str(path))
    if changed:
        raise ValueError(
            f"{listed(changed)} changed after this run had begun, but the stage would be recorded with the "
            "code as it was then. Run the same command again (before a single stage: dvc repro snapshot). If "
            "the change is undone, results so far come from DVC's cache."
        )


def dependencies(item: str, params: Params) -> list[Path]:
    """Return the paths that a stage item depends on according to dvc.yaml.

    Raises:
        ValueError: if dvc.yaml has no such stage any more.
    """
    name, _, value = item.rpartition(":")[2].partition("@")

    def insert(place: re.Match[str]) -> str:
        found: Any = params
        for key in re.findall(r"\w+", place[1]):
            found = found[int(key)] if key.isdigit() else getattr(found, key)
        return str(found)

    try:
        entries = YAML(typ="safe").load(Path("dvc.yaml"))["stages"][name]["deps"]
        texts = [re.sub(r"\$\{item\.\w+\}", lambda _: value, entry) for entry in entries]
        return [Path(re.sub(r"\$\{(.*?)\}", insert, text)) for text in texts]
    except (OSError, YAMLError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"dvc.yaml changed after this run had begun: {error!r} for the stage {item}. Run the same "
            "command again."
        ) from error


def stamps_of(paths: Iterable[Path]) -> dict[Path, Stamp | None]:
    """Return the stamp of each file, and of each file in a folder."""
    files = (file for path in paths for file in ([path] if not path.is_dir() else walk(path)))
    return {file: stamp(file) for file in files}


def walk(folder: Path) -> Iterator[Path]:
    """Yield the folder itself, whose time changes with its list of files, and everything in it."""
    for place, _, names in os.walk(folder, followlinks=True):
        yield Path(place)
        yield from (Path(place, name) for name in names)


def stamp(path: Path) -> Stamp | None:
    """Return times of modification and change in nanoseconds, and size; None if there is no such file.

    Only the time of change shows that a file was moved away and back, or put back with its old time.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size


def written(stamps: dict[Path, Stamp | None]) -> list[str]:
    """Return the files that are no longer as they were."""
    return [str(path) for path, before in stamps.items() if stamp(path) != before]


def watch(stage: str, params: Params, stamps: dict[Path, Stamp | None], over: threading.Event) -> None:
    """Warn, once for each change, while a stage runs."""
    known: set[str] = set()
    last: Stamp | None = None
    while not over.wait(SECONDS):
        messages = [
            f"{path} has changed. This stage will end without a result: it may have read either version."
            for path in written(stamps)
        ]
        if (now := stamp(Path("params.yaml"))) != last:
            last = now
            with contextlib.suppress(OSError, ValueError):  # in the middle of an edit
                messages += edits(params, load_params())
        for message in messages:
            if message not in known:
                print(f"\n{stage}: warning: {message}", file=sys.stderr, flush=True)  # after a bar
        known |= set(messages)


def edits(before: Params, after: Params) -> list[str]:
    """Return a sentence if values of params.yaml have changed since the run began."""
    old, new = dotted(before.model_dump(mode="json")), dotted(after.model_dump(mode="json"))
    names = [name for name in old | new if old.get(name) != new.get(name)]
    changed = [f"{name} {old.get(name)} -> {new.get(name)}" for name in names]
    if not changed:
        return []
    return [
        f"params.yaml has changed: {listed(changed)}. This run goes on with the values that it began with, "
        "and its results are recorded with them. For the new ones, run the same command again."
    ]


def listed(names: list[str]) -> str:
    """Return names, separated by commas; only the first few of many."""
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest
