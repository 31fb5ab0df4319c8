"""Numbers with a noun."""

from convs2s.text.counted import counted


def test_one_has_no_plural() -> None:
    """All other numbers have one."""
    assert counted(1, "epoch") == "1 epoch"
    assert counted(0, "epoch") == "0 epochs"
    assert counted(2000, "line") == "2,000 lines"
    assert [counted(n, "hypothesis", "hypotheses") for n in (1, 2)] == ["1 hypothesis", "2 hypotheses"]
