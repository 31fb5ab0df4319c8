"""Edits of the model take effect everywhere: in training, translations, scores and a server."""

from pathlib import Path

import pytest

from tests.edits.compare import Unedited, differing, run
from tests.edits.routes import ENGINES
from tests.edits.table import DECODING, EDITS, TRAINING, Edit

FIRST = {
    "learned gain in the encoder's blocks, 1 at first",
    "gated linear unit is written out (the same)",
}
"""The edits that the default suite tries, besides those of tests/test_change_the_model.py."""


@pytest.fixture(scope="module")
def unedited(tmp_path_factory: pytest.TempPathFactory) -> Unedited:
    return Unedited(tmp_path_factory.mktemp("unedited"))


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(edit, id=edit.name, marks=[] if edit.name in FIRST else pytest.mark.slow)
        for edit in EDITS
    ],
)
def test_what_is_edited_runs(edit: Edit, unedited: Unedited, tmp_path: Path) -> None:
    """It runs on every route, with the engine or without. Only fast paths that differ are left out."""
    before = unedited.run(edit)
    after = run(tmp_path / "edited", edit, None if edit.adds_weights else unedited.package)
    auto = after["auto"]
    plain = after["plain"]
    # Other dropout masks are drawn without the engine.
    alike = DECODING if edit.train.get("dropout") else DECODING | TRAINING
    assert differing(auto, plain) & alike == set()
    assert {engine: differing(before[engine], after[engine]) for engine in ENGINES} == dict.fromkeys(
        ENGINES, edit.alters
    )
    assert plain["warnings"] == {}
    assert {route: set(faults) for route, faults in auto["warnings"].items()} == expected_warnings(edit)
    for results in (auto, plain):
        if edit.error is None:
            assert results["errors"] == {}
            [texts, rows] = results["serve"]
            assert results["translate"][0] == rows
            assert texts == [text for text, _ in rows[::2]]
        else:
            assert results["errors"].keys() == DECODING
            assert all(edit.error in message for message in results["errors"].values())


def expected_warnings(edit: Edit) -> dict[str, set[str]]:
    """Return the fast paths that each route should leave out, of those that leave out any."""
    layers = edit.left_out - {"decoder"}
    decoder = edit.left_out & {"decoder"}
    routes = {"training": layers} | dict.fromkeys(DECODING, decoder)
    return {route: paths for route, paths in routes.items() if paths}


def test_twenty_edits_change_every_route() -> None:
    """The others change only training, the attention, or nothing, so they alone would prove little."""
    assert sum(edit.alters == DECODING | TRAINING for edit in EDITS) >= 20
