"""The benchmark of text that survives tokenization and detokenization."""

from benchmarks.round_trip import PREPARATIONS, survivors

LINES = ["Der Zug fährt 80 km/h, sagt er.", "Das ist ein Haus.", "Er sagt: ein Zug fährt."] * 20


def test_a_line_survives_or_not() -> None:
    """Moses puts spaces around a slash; SentencePiece restores every line."""
    assert survivors(LINES, "de", PREPARATIONS["moses"], 40)[:3] == [False, True, True]
    assert all(survivors(LINES, "de", PREPARATIONS["sentencepiece"], 285))
