"""Numbers with a noun."""

from convs2s.messages import inflect


def test_one_has_no_plural() -> None:
    """All other numbers have one."""
    assert inflect(1, "epoch") == "1 epoch"
    assert inflect(0, "epoch") == "0 epochs"
    assert inflect(2000, "line") == "2,000 lines"
    assert [inflect(n, "hypothesis", "hypotheses") for n in (1, 2)] == ["1 hypothesis", "2 hypotheses"]
