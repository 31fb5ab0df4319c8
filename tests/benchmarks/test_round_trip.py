"""The benchmark of text that survives tokenization and detokenization."""

from benchmarks.round_trip import survivors

LINES = ["Der Zug fährt 80 km/h, sagt er.", "Das ist ein Haus.", "Er sagt: ein Zug fährt."] * 20


def test_a_line_survives_or_not() -> None:
    """Moses puts spaces around a slash; SentencePiece restores every line."""
    assert survivors(LINES, "de", "moses", 40)[:3] == [False, True, True]
    assert all(survivors(LINES, "de", "sentencepiece", 285))
