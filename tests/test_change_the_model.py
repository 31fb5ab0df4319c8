"""The edits of docs/change-the-model.md fit the code as it is, and do what the page says."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.docs import pages
from tests.docs.pages import ROOT

TEXT = pages.read("docs/change-the-model.md")
SECTIONS = {section.partition("\n")[0]: section for section in re.split("^## ", TEXT, flags=re.MULTILINE)[1:]}
SCALE = "The smallest edit: the scale of the attention"


@dataclass(frozen=True)
class Edit:
    """What the diffs of some sections change.

    Attributes:
        sections: the headings; the diffs are applied in this order.
        row: its name in the page's table; empty if it has none.
        left_out: the fast paths that no longer compute what the model does.
        changes: values of the section model, without which nothing changes.
        is_slow: whether what it does is left to the slow tests.
    """

    sections: tuple[str, ...]
    row: str
    left_out: set[str]
    changes: tuple[str, ...] = ()
    is_slow: bool = False


EDITS = [
    Edit((SCALE,), "scale", {"decoder"}),
    Edit((SCALE, "Bring the engine along"), "", set(), is_slow=True),
    Edit(("An activation",), "activation", {"decoder", "convolution"}, is_slow=True),
    Edit(("A norm in the block",), "norm", {"decoder"}, is_slow=True),
    Edit(("Sinusoidal positions",), "positions", set(), is_slow=True),
    Edit(("A value of its own: layer dropout",), "layer dropout", set(), ("layer_dropout=0.5",)),
]


def diffs(edit: Edit) -> list[str]:
    """Return the diffs of an edit."""
    return [diff for name in edit.sections for diff in pages.blocks(SECTIONS[name], "diff")]


def write_edited(folder: Path, edit: Edit) -> None:
    """Write folder/convs2s: the code, with its compiled loops, after an edit."""
    shutil.copytree(ROOT / "convs2s", folder / "convs2s")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment["GIT_CEILING_DIRECTORIES"] = str(folder.parent)  # the copy is in no repository
    for diff in diffs(edit):
        command = ["git", "apply", "-"]
        applied = subprocess.run(
            command, input=diff, text=True, stderr=subprocess.PIPE, check=False, cwd=folder, env=environment
        )
        assert applied.returncode == 0, f"docs/change-the-model.md no longer fits the code: {applied.stderr}"


def compute(folder: Path, edit: Edit) -> dict[str, Any]:
    """Return what tests.docs.computed finds with an edited copy of the code."""
    write_edited(folder, edit)
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "CONVS2S_ENGINE": "auto"}
    command = [sys.executable, "-m", "tests.docs.computed", str(folder), *edit.changes]
    subprocess.run(command, check=True, cwd=folder, env=environment)
    computed: dict[str, Any] = json.loads((folder / "computed.json").read_text(encoding="utf-8"))
    assert computed["code"] == str(folder / "convs2s" / "__init__.py")
    return computed


@pytest.fixture(scope="module")
def unedited(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the code computes as it is, with the engine and without a warning."""
    computed = compute(tmp_path_factory.mktemp("unedited"), Edit((), "", set()))
    assert computed["decoder"] == "EngineModel"
    assert computed["warnings"] == []
    assert computed["logits"] == computed["training logits"]
    return computed


def is_changed(before: list[float], after: list[float]) -> bool:
    """Return whether any number differs by more than a thousandth of the largest."""
    first, second = torch.tensor(before), torch.tensor(after)
    return bool((first - second).abs().max() > 1e-3 * first.abs().max())


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.sections[-1])
def test_every_diff_of_the_page_fits_the_code(edit: Edit, tmp_path: Path) -> None:
    """Whoever changes the lines that it changes, or those around them, also changes the page."""
    write_edited(tmp_path, edit)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(edit, id=edit.sections[-1], marks=pytest.mark.slow if edit.is_slow else ())
        for edit in EDITS
    ],
)
def test_an_edit_of_the_page_does_what_the_page_says(
    edit: Edit, unedited: dict[str, Any], tmp_path: Path
) -> None:
    """It changes the model, and leaves out the fast paths that the page's table names, and no others."""
    computed = compute(tmp_path, edit)
    assert is_changed(unedited["logits"], computed["logits"]) == (not edit.changes)
    assert is_changed(unedited["training logits"], computed["training logits"])
    left_out = set(re.findall(r"The CPU's fast (\w+)", " ".join(computed["warnings"])))
    assert left_out == edit.left_out
    assert (computed["decoder"] == "EngineModel") == ("decoder" not in left_out)
    if edit.sections == (SCALE,):
        [quoted] = pages.blocks(SECTIONS[SCALE], "text")
        printed = "translate: warning: " + " ".join(computed["warnings"])
        size = r"differ by [\d.]+"
        assert re.sub(size, "", " ".join(quoted.split())) == re.sub(size, "", printed)


def test_the_table_of_the_page_names_files_and_warnings() -> None:
    """They must be those of the diffs and of the test above, which must try every diff of the page."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in SECTIONS["What each edit takes"].splitlines()
        if line.startswith("| ") and "`convs2s" in line
    ]
    expected = {
        edit.row: [set(re.findall(r"^\+\+\+ b/(\S+)", "\n".join(diffs(edit)), re.MULTILINE)), edit.left_out]
        for edit in EDITS
        if edit.row
    }
    named = {
        row[0]: [set(re.findall(r"`(\S+\.py)`", row[1])), set(row[3].split(", ")) - {"none"}] for row in rows
    }
    assert named == expected
    tried = {name for edit in EDITS for name in edit.sections}
    assert tried == {name for name, text in SECTIONS.items() if pages.blocks(text, "diff")}
