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

from tests.faults import forked
from tests.faults.results import differences, outputs

# Each stage is a fork of this process, which has these already: they take most of a stage's time.
LIBRARIES = ["torch", "ruamel.yaml", "pandas", "matplotlib.figure", "sacremoses", "sacrebleu"]
LIBRARIES += ["pydantic.main", "pydantic.types", "rouge_score.rouge_scorer", "numba", "numba.cpython.charseq"]
NOTHING = ("params.yaml", "max_words: 175", "max_words: 175")
EDITS = [
    ("params.yaml", "max_words: 175", "max_words: 8"),
    ("params.yaml", " learning_rate: 0.25", " learning_rate: 0.45"),
    ("params.yaml", "beam_size: 2", "beam_size: 1"),
    ("convs2s/text/corpus/filter.py", "BIN_WORDS = 5", "BIN_WORDS = 4"),
    ("convs2s/model/glu_block.py", "math.sqrt(0.5)\n", "math.sqrt(0.4)\n"),
    ("convs2s/score/tables.py", '"00-05"', '"01-05"'),
    ("data/own/train.tsv", "END\tENDE\n", "The end\tSchluss\n"),
    ("data/own/test.tsv", "END\tENDE\n", "The end\tSchluss\n"),
]
"""Files, a text in them, and what replaces it."""


def make(folder: Path) -> int:
    """Make a repository with code of its own, in a process that may import the project."""
    from tests.faults import repository  # noqa: PLC0415

    repository.make(folder)
    for name in ("convs2s", "pipelines"):
        source = (folder / name).resolve()
        (folder / name).unlink()
        shutil.copytree(source, folder / name)
    return 0


def copy(base: Path, folder: Path) -> None:
    """Copy a repository in which nothing has run yet."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder, symlinks=True)


def edit(folder: Path, path: str, old: str, new: str) -> None:
    """Replace text in a file, as an editor does: the file keeps its inode or not, at random."""
    file = folder / path
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: {old!r}"
    target = file.with_name(f".{file.name}.editing") if random.random() < 0.5 else file
    target.write_text(text.replace(old, new), encoding="utf-8")
    target.replace(file)


def start(folder: Path) -> forked.Process:
    """Start `dvc repro`, whose stages import the repository's own code."""
    return forked.start(folder, {"dvc": lambda: sys.path.insert(0, str(folder))})


@functools.cache
def reference(base: Path, *change: str) -> Mapping[str, str]:
    """Return the hashes of all outputs of an undisturbed run from scratch with an edit."""
    folder = base.with_name("reference")
    copy(base, folder)
    edit(folder, *change)
    assert start(folder).wait() == 0
    return outputs(folder)


def play(base: Path, seconds: float, dice: random.Random) -> list[str]:
    """Play a round; return what is wrong. An undisturbed run takes so many seconds."""
    folder, (path, old, new) = base.with_name("round"), dice.choice(EDITS)
    copy(base, folder)
    process = start(folder)
    process.join(dice.uniform(0, seconds))
    edit(folder, path, old, new)
    if is_undone := dice.random() < 0.5:
        process.join(dice.choice([0.05, 0.5, 2.0]) * dice.random())
        edit(folder, path, new, old)
    print(f"{path}: {new!r}, put back: {is_undone}, status {process.wait()}")
    assert start(folder).wait() == 0
    edited, plain = reference(base, path, old, new), reference(base, *NOTHING)
    faults = list(differences(folder, plain if is_undone else edited))
    edit(folder, path, *((old, new) if is_undone else (new, old)))
    assert start(folder).wait() == 0
    return [*faults, *differences(folder, edited if is_undone else plain)]


def main() -> int:
    """Play rounds until one has an error; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.edits", description=__doc__)
    parser.add_argument("edits", type=int)
    edits, dice = parser.parse_args().edits, random.Random(1)
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary, "base")
        assert forked.Process(functools.partial(make, base)).wait() == 0
        begin = time.monotonic()
        reference(base, *NOTHING)
        seconds = time.monotonic() - begin
        for number in range(1, edits + 1):
            faults = play(base, seconds, dice)
            print(f"{number}: {faults[:5] or 'equal'}", flush=True)
            if faults:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
