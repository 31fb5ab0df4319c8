"""The benchmark of text that survives tokenization and detokenization."""

from benchmarks.round_trip import PREPARATIONS, survivors

LINES = ["Der Zug fährt 80 km/h, sagt er.", "Das ist ein Haus.", "Er sagt: ein Zug fährt."]


def test_a_line_survives_or_not() -> None:
    """Moses puts spaces around a slash; the lossless tokenizer restores every line."""
    found = {name: survivors(LINES, "de", PREPARATIONS[name], 40) for name in ("moses", "moses, lossless")}
    assert found == {"moses": [False, True, True], "moses, lossless": [True, True, True]}
