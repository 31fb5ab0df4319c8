"""The model against the reference: real fairseq models give the same outputs here."""

import pytest
import torch
from torch.testing import assert_close

from convs2s.text.vocabulary.vocabulary import PAD
from tests.golden import NAMES, golden, golden_model, our_ids
from tests.golden.judge import SENTENCES, check_outputs, shifted, sources, wanted_logits


@pytest.mark.parametrize("name", NAMES)
def test_logits_attention_and_loss_are_those_of_fairseq(name: str) -> None:
    """The same weights give the same function: every value of 12 sentences is compared."""
    check_outputs(golden_model(name), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_gives_what_single_sentences_give(name: str) -> None:
    """Padding must change nothing (T8)."""
    inputs = [shifted(our_ids(golden(name)[f"target_{k}"])) for k in SENTENCES]
    source = torch.nn.utils.rnn.pad_sequence(sources(name), batch_first=True, padding_value=PAD)
    target = torch.nn.utils.rnn.pad_sequence(inputs, batch_first=True, padding_value=PAD)
    assert source.min() == PAD  # the sentences do differ in length
    logits, _ = golden_model(name)(source, target)
    for k in SENTENCES:
        wanted = wanted_logits(name, k)
        assert_close(logits[k, : len(wanted)], wanted, atol=1e-4, rtol=0)
