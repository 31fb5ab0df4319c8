"""Edit values, code and texts while the DAG runs: `python -m tests.faults.edits 200` for 200 edits.

In each round, everything is run from scratch, and meanwhile a value, a code file or a text is edited at a
random moment; it may be put back a moment later. After an undisturbed run, and after another with the edit
undone, all results must equal those of undisturbed runs from scratch: a stage that was recorded with inputs
other than those it had read would not run again.

This process imports nothing of the project, because each stage must import what its repository contains.
"""

import argparse
import functools
import importlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.faults import forked
from tests.faults.results import begin_anew, differences, outputs

# Each stage is a fork of this process, which has these already: they take most of a stage's time.
LIBRARIES = ["torch", "ruamel.yaml", "pandas", "matplotlib.figure", "sacremoses", "sacrebleu"]
LIBRARIES += ["pydantic.main", "pydantic.types", "rouge_score.rouge_scorer", "numba", "numba.cpython.charseq"]


class Edit(NamedTuple):
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


NOTHING = Edit("params.yaml", "max_words: 175", "max_words: 175")
EDITS = [
    Edit("params.yaml", "max_words: 175", "max_words: 8"),
    Edit("params.yaml", "iterations: 5", "iterations: 4"),
    Edit("params.yaml", " learning_rate: 0.25", " learning_rate: 0.45"),
    Edit("params.yaml", "beam_size: 2", "beam_size: 1"),
    Edit("convs2s/text/corpus/filter.py", "BIN_WORDS = 5", "BIN_WORDS = 4"),
    Edit("convs2s/model/glu_block.py", "math.sqrt(0.5)\n", "math.sqrt(0.4)\n"),
    Edit("convs2s/decode/length_normalization.py", "max(1, len", "max(3, len"),
    Edit("convs2s/score/tables.py", '"00-05"', '"01-05"'),
    Edit("data/own/train.tsv", "END\tENDE\n", "The end\tSchluss\n"),
    Edit("data/own/test.tsv", "END\tENDE\n", "The end\tSchluss\n"),
]


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


def repro(folder: Path) -> None:
    """Run `dvc repro` undisturbed."""
    assert start(folder).wait() == 0, folder.with_suffix(".log").read_text()[-3000:]


def copy(base: Path, folder: Path) -> None:
    """Copy a repository without what has been computed."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder, symlinks=True)
    config = folder / ".dvc" / "config.local"
    config.write_text(config.read_text().replace(str(base), str(folder)))
    begin_anew(folder)


@functools.cache
def reference(base: Path, edit: Edit) -> Mapping[str, str]:
    """Return the hashes of all outputs of an undisturbed run from scratch with an edit."""
    folder = base.with_name("reference")
    copy(base, folder)
    edit.apply(folder)
    repro(folder)
    return outputs(folder)


def play(base: Path, seconds: float, dice: random.Random) -> tuple[str, list[str]]:
    """Play a round; return what was done, and what is wrong. An undisturbed run takes so many seconds."""
    folder, edit = base.with_name("round"), dice.choice(EDITS)
    copy(base, folder)
    process, undone = start(folder), dice.random() < 0.5
    waits = dice.uniform(0, seconds), dice.choice([0.05, 0.5, 2.0]) * dice.random()
    process.join(waits[0])
    edit.apply(folder)
    if undone:
        process.join(waits[1])
        edit.apply(folder, undo=True)
    done = f"{edit.new!r} after {waits[: 1 + undone]} s, put back: {undone}, status {process.wait()}"
    faults = [f"{left} is left" for left in forked.left_running(folder)]
    repro(folder)
    faults += differences(folder, reference(base, NOTHING if undone else edit))
    edit.apply(folder, undo=not undone)
    repro(folder)
    return done, [*faults, *differences(folder, reference(base, edit if undone else NOTHING))]


def main() -> int:
    """Print a line for each round and the total; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.edits", description=__doc__)
    parser.add_argument("edits", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice, wrong = random.Random(arguments.seed), 0
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary, "base")
        assert forked.Process(functools.partial(make, base)).wait() == 0
        repro(base)  # compiles
        begin = time.monotonic()
        reference(base, NOTHING)
        seconds = time.monotonic() - begin
        for number in range(1, arguments.edits + 1):
            done, faults = play(base, seconds, dice)
            wrong += bool(faults)
            print(f"{number}: {done}: {faults[:5] or 'equal'}", flush=True)
    print(f"{arguments.edits} edits; {wrong} rounds differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
