"""Edit values and texts while the DAG runs: `python -m tests.faults --edits 200` for 200 edits.

In each round, everything is run from scratch, and meanwhile a value or a text is edited at a random moment;
it may be put back a moment later. After an undisturbed run, and after another with the edit undone, all
results must equal those of undisturbed runs from scratch: a stage that was recorded with inputs other than
those it had read would not run again.
"""

import functools
import random
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.faults import forked, repository
from tests.faults.results import differences, outputs

EDITS = [
    ("params.yaml", "max_words: 175", "max_words: 8"),
    ("params.yaml", " learning_rate: 0.25", " learning_rate: 0.45"),
    ("params.yaml", "beam_size: 2", "beam_size: 1"),
    ("data/own/train.tsv", "END\tENDE\n", "The end\tSchluss\n"),
    ("data/own/test.tsv", "END\tENDE\n", "The end\tSchluss\n"),
]
"""Files, a text in them, and what replaces it."""


def edit(folder: Path, path: str, old: str, new: str) -> None:
    """Replace text in a file, as an editor does: the file keeps its inode or not, at random."""
    file = folder / path
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: {old!r}"
    target = file.with_name(f".{file.name}.editing") if random.random() < 0.5 else file
    target.write_text(text.replace(old, new), encoding="utf-8")
    target.replace(file)


@functools.cache
def reference(folder: Path, *change: str) -> Mapping[str, str]:
    """Return the hashes of all outputs of an undisturbed run from scratch with an edit."""
    edit(repository.make(folder), *change)
    assert repository.repro(folder) == 0
    found = outputs(folder)
    shutil.rmtree(folder)
    return found


def play(
    folder: Path, expected: Mapping[str, str], dice: random.Random, patience: float
) -> tuple[Counter[str], list[str]]:
    """Play a round; return the edit, and what is wrong. `patience` is the time of an undisturbed run."""
    path, old, new = dice.choice(EDITS)
    edited = reference(folder, path, old, new)
    process = forked.start(repository.make(folder))
    process.join(dice.uniform(0, patience))
    edit(folder, path, old, new)
    if is_undone := dice.random() < 0.5:
        process.join(dice.choice([0.05, 0.5, 2.0]) * dice.random())
        edit(folder, path, new, old)
    process.wait()
    faults = list[str]()
    for wanted in (expected, edited) if is_undone else (edited, expected):
        assert repository.repro(folder) == 0
        faults += differences(folder, wanted)
        edit(folder, path, *((old, new) if wanted is expected else (new, old)))
    shutil.rmtree(folder)
    return Counter([f"{new}{', put back' * is_undone}"]), faults
