"""The model against the reference: real fairseq models give the same outputs here."""

import pytest

from tests.golden import NAMES, golden_model
from tests.golden.judge import check_outputs


@pytest.mark.parametrize("name", NAMES)
def test_logits_attention_and_loss_are_those_of_fairseq(name: str) -> None:
    """The same weights give the same function: every value of 12 sentences is compared."""
    check_outputs(golden_model(name), name)
