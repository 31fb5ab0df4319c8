"""Edit values, code and texts while the DAG runs: `python -m tests.faults.edits 200` for 200 edits.

Each round begins with an up-to-date repository, in most cases after an edit so that there is something to
do. While `dvc repro` runs, a value, a code file or a text is edited at a random moment; it may be put back a
moment later, and the run may be killed. After the run, after an undisturbed one, and after another with
everything put back, all results and all that DVC has recorded must equal those of undisturbed runs with the
same values, code and texts. An edit in the milliseconds in which nobody looks is seen here, and counted.

This process imports nothing of the project, because each stage must import what its repository contains.
"""

import argparse
import functools
import importlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.faults import forked
from tests.faults.results import lock, outputs
from tests.fresh import LIBRARIES

State = frozenset[str]  # names of the edits that are in place
Records = dict[str, Any]  # outputs of stages, by everything that DVC records as their inputs


@dataclass(frozen=True)
class Edit:
    """Replaces text in a file."""

    path: str
    old: str
    new: str

    def apply(self, folder: Path, undo: bool = False) -> None:
        """Make the edit, or undo it, as an editor does: the file keeps its inode or not, at random."""
        path, (old, new) = folder / self.path, (self.new, self.old) if undo else (self.old, self.new)
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path}: {old!r}"
        target = path.with_name(f".{path.name}.editing") if random.random() < 0.5 else path
        target.write_text(text.replace(old, new), encoding="utf-8")
        target.replace(path)


EDITS = {
    "max_words": Edit("params.yaml", "max_words: 175", "max_words: 8"),
    "iterations": Edit("params.yaml", "iterations: 5", "iterations: 4"),
    "learning_rate": Edit("params.yaml", "\n  learning_rate: 0.25", "\n  learning_rate: 0.45"),
    "beam_size": Edit("params.yaml", "beam_size: 2", "beam_size: 1"),
    "examples": Edit("params.yaml", "\n  examples: 5", "\n  examples: 3"),
    "filter code": Edit("convs2s/text/corpus/filter.py", "BIN_WORDS = 5", "BIN_WORDS = 4"),
    "align code": Edit("convs2s/text/alignment/diagonal_prior.py", "TENSION = 4.0\n", "TENSION = 3.0\n"),
    "model code": Edit("convs2s/model/glu_block.py", "math.sqrt(0.5)\n", "math.sqrt(0.4)\n"),
    "optimizer code": Edit("convs2s/train/optimizer.py", "nesterov=True", "nesterov=not True"),
    "search code": Edit("convs2s/decode/length_normalization.py", "max(1, len", "max(3, len"),
    "scores code": Edit("convs2s/score/tables.py", "if place else 0\n", "if place else 1\n"),
    "training text": Edit("data/own/train.tsv", "END\tENDE\n", "The end\tSchluss\n"),
    "test text": Edit("data/own/test.tsv", "END\tENDE\n", "The end\tSchluss\n"),
}


def make(folder: Path) -> int:
    """Make a repository with code and texts of its own, in a process that may import the project."""
    from tests.faults import repository  # noqa: PLC0415

    repository.make(folder)
    for name in ("convs2s", "pipelines"):
        source = (folder / name).resolve()
        (folder / name).unlink()
        shutil.copytree(source, folder / name)
    return 0


def start(folder: Path) -> forked.Process:
    """Start `dvc repro`, whose stages import the repository's own code."""
    return forked.start(folder, {"*": lambda: sys.path.insert(0, str(folder))})


def repro(folder: Path) -> list[str]:
    """Run `make repro` undisturbed; return what went wrong."""

    def repair() -> int:
        importlib.import_module("pipelines.repair").repair(folder)
        return 0

    status = forked.Process(repair).wait() or start(folder).wait()
    return [f"an undisturbed run ended with status {status}"] if status else []


def records(folder: Path) -> Records:
    """Return what dvc.lock and the run cache hold."""
    runs = (YAML(typ="safe").load(path) for path in folder.glob(".dvc/cache/runs/*/*/*"))
    found: Records = {}
    for stage in (*lock(folder).values(), *runs):
        outs = {out["path"]: out["md5"] for out in stage.pop("outs")}
        inputs = json.dumps(stage, sort_keys=True)
        if found.setdefault(inputs, outs) != outs:
            found[f"two results for {inputs}"] = outs
    return found


class References:
    """Undisturbed runs from scratch."""

    def __init__(self, base: Path) -> None:
        self.base, self.records = base, Records()
        self.results: dict[State, dict[str, str]] = {}
        self.seconds: dict[State, float] = {}
        self.of(State())

    def of(self, state: State) -> dict[str, str]:
        """Return the hashes of all outputs for a state, and note its records."""
        if state not in self.results:
            folder = self.base.with_name("reference")
            copy(self.base, folder, state)
            begin = time.monotonic()
            assert not repro(folder), folder.with_suffix(".log").read_text()[-3000:]
            self.seconds[state] = time.monotonic() - begin
            self.results[state] = outputs(folder)
            self.records |= records(folder)
            shutil.rmtree(folder)
        return self.results[state]

    def faults(self, folder: Path) -> Iterator[str]:
        """Yield what a repository has recorded otherwise than an undisturbed run with the same inputs.

        Stages before and after an edit have inputs together that no undisturbed run has.
        """
        for inputs, outs in records(folder).items():
            if self.records.get(inputs, outs) != outs:
                yield f"{inputs[:150]}: expected {self.records[inputs]}, found {outs}"


def copy(base: Path, folder: Path, state: State) -> None:
    """Copy a repository and make edits."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder, symlinks=True)
    config = folder / ".dvc" / "config.local"
    config.write_text(config.read_text().replace(str(base), str(folder)))
    for name in sorted(state):
        EDITS[name].apply(folder)


def play(folder: Path, references: References, dice: random.Random) -> tuple[str, list[str]]:
    """Play a round; return what was done, and what is wrong."""
    first = State(dice.sample(sorted(EDITS), dice.choice([0, 1, 1, 1])))
    name = dice.choice(sorted(EDITS))
    for state in (first, first ^ {name}):
        references.of(state)
    copy(references.base.with_name("base"), folder, first)
    anew = not first or dice.random() < 0.5
    if anew:
        shutil.rmtree(folder / ".dvc" / "cache")
        (folder / "dvc.lock").unlink()
    done = [f"{'+'.join(sorted(first)) or 'no edit'}{', from scratch' * anew}; {name}"]
    begin, process = time.monotonic(), start(folder)

    def act(what: str, wait: float, action: Callable[[], None]) -> None:
        process.join(wait)
        done.append(f"{what} at {time.monotonic() - begin:.2f} s{' (ended)' * (not process.is_alive())}")
        action()

    edit = functools.partial(EDITS[name].apply, folder)
    wait = dice.uniform(0, references.seconds[first] * (1.0 if anew else 0.4))
    act("edited", wait, lambda: edit(name in first))
    state, killed = first ^ {name}, False
    if dice.random() < 0.5:
        wait = dice.choice([0.05, 0.5, 2.0]) * dice.random()
        act("put back", wait, lambda: edit(name not in first))
        state = first
    if dice.random() < 0.25:
        act("killed", dice.uniform(0, 3), process.kill_group)
        killed = True
    done.append(f"status {process.wait()}")
    faults = [f"{one} is left" for one in forked.left_running(folder)]
    if (folder / "dvc.lock").exists() and not killed:
        faults += references.faults(folder)
    for expected in (state, State()):
        for one in sorted(state ^ expected):
            EDITS[one].apply(folder, undo=one in state)
        faults += repro(folder)
        found, right = outputs(folder), references.of(expected)
        changed = [name for name in right if found.get(name) != right[name]]
        faults += [f"{sorted(expected)}: {name} differs" for name in changed[:5]]
        faults += references.faults(folder)
    return ", ".join(done), faults


def make_pristine(place: Path) -> Path:
    """Make the repository `base` and run it; return a copy in which nothing has run, with compiled code."""
    base, pristine = place / "base", place / "pristine"
    assert forked.Process(functools.partial(make, base)).wait() == 0
    for name in LIBRARIES:
        importlib.import_module(name)
    forked.import_dvc(base)
    copy(base, pristine, State())
    assert not repro(base), base.with_suffix(".log").read_text()[-3000:]
    for cache in base.rglob("__pycache__"):
        shutil.copytree(cache, pristine / cache.relative_to(base), dirs_exist_ok=True)
    return pristine


def main() -> int:
    """Print a line for each round and the total; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.edits", description=__doc__)
    parser.add_argument("edits", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice, wrong = random.Random(arguments.seed), 0
    with tempfile.TemporaryDirectory() as temporary:
        references = References(make_pristine(Path(temporary)))
        for number in range(1, arguments.edits + 1):
            done, faults = play(Path(temporary) / "round", references, dice)
            wrong += bool(faults)
            print(f"{number}: {done}: {faults or 'equal'}", flush=True)
    assert not {name for name in sys.modules if name.split(".")[0] in {"convs2s", "pipelines"}}
    print(f"{arguments.edits} edits; {wrong} rounds differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
