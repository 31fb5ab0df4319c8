"""Overrides of a preset: parsed, put into params.yaml, and written as the command that does so."""

import shlex
import subprocess
from typing import Any

import pytest

from pipelines.preset.overrides import overridden, override, overrides_of, preset_command
from pipelines.preset.render import EXPERIMENTS
from tests.presets import rendered

AWKWARD = [{"kind": "files", "source": 'it\'s $HOME/50% "of" a b', "tsv": None}]


def test_overrides_keep_comments_and_are_checked() -> None:
    """Overrides are typed by hand into a form or a command, so mistakes are likely."""
    before = rendered("tatoeba-en-de")
    comments = [line.split("#")[1] for line in before.splitlines() if "#" in line]
    values = {"train.dropout": 0.3, "download.train.0.tsv": "a.tsv", "train.seeds": [5]}
    text, params = overridden(before, values)
    assert [line.split("#")[1] for line in text.splitlines() if "#" in line] == comments
    assert params.train.dropout == 0.3
    assert list(params.train.seeds) == [5]
    for name in ("train.droput", "nothing.at.all", "download.train.7.tsv"):
        with pytest.raises(ValueError, match=f"overrides: params.yaml has no {name}"):
            overridden(before, {name: 1})
    with pytest.raises(ValueError, match=r"invalid overrides: params.yaml has 1 fault\(s\):\s+train.dropout"):
        overridden(before, {"train.dropout": 3})


def test_only_the_lines_of_overrides_change() -> None:
    """Nulls, quotes, long lines and indentation are kept; a list stays on its line."""
    before = rendered("wmt14-en-fr-paper")
    assert overridden(before, {})[0] == before
    after, _ = overridden(before, {"train.seeds": [4, 5]})
    changed = [pair for pair in zip(before.split("\n"), after.split("\n"), strict=True) if len({*pair}) > 1]
    assert [[line.split("#")[0].strip() for line in pair] for pair in changed] == [
        ["seeds: [1, 2, 3]", "seeds: [4, 5]"]
    ]


def test_a_list_written_over_several_lines_can_be_overridden() -> None:
    """Its comment and the next section must survive."""
    before = rendered("tatoeba-en-de")
    line = next(line for line in before.splitlines() if line.startswith("  seeds: [1] #"))
    comment = line.split("#")[1]
    text, params = overridden(before.replace(line, f"  seeds: #{comment}\n  - 1"), {"train.seeds": [5]})
    assert list(params.train.seeds) == [5]
    [after] = [line for line in text.splitlines() if line.startswith("  seeds:")]
    assert after.split("#")[1] == comment


@pytest.mark.parametrize(
    ("overrides", "command"),
    [
        ({}, "make preset NAME=x"),
        ({"a.b": [1, 2], "a.c": "word"}, 'make preset NAME=x SET="a.b=[1,2] a.c=word"'),
        ({"a.b": None, "a.c": 1e-05, "a.d": True}, 'make preset NAME=x SET="a.b=null a.c=1e-05 a.d=true"'),
        ({"a.b": ["all", "b"], "a.c": ["a,b", "1"]}, None),
        ({"a.b": ["all"]}, 'make preset NAME=x SET="a.b=[all]"'),
        ({"a.b": "true", "a.c": "", "a.d": "10"}, None),
        ({"a.b": AWKWARD, "a.c": "$$ $(x) `y` é"}, None),
    ],
)
def test_overrides_survive_the_command_that_sets_them(overrides: dict[str, Any], command: str | None) -> None:
    """Values must pass through make and the shell unchanged, and text must stay text."""
    found = preset_command("x", overrides)
    assert command in {None, found}
    assert overrides_of(found) == overrides
    dry = ["--no-print-directory", "--dry-run", "--assume-old=install"]
    recipe = subprocess.run(
        ["make", *dry, *shlex.split(found)[1:]], cwd=EXPERIMENTS.parent, check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    words = shlex.split(recipe.stdout.strip().split("\n")[-1])
    assert words[:4] == ["python", "-m", "pipelines.preset", "x"]
    assert dict(map(override, words[4:])) == overrides
