"""The model against the reference: real fairseq models give the same outputs here."""

import numpy as np
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


def test_golden_losses_are_the_mean_of_their_logits() -> None:
    """The files themselves are consistent, so the agreement above means something."""
    arrays = golden("plain")
    logits, target = arrays["logits_0"], arrays["target_0"]
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    loss = -log_probabilities[np.arange(len(target)), target].mean()
    assert_close(float(loss), float(arrays["loss_nats_per_token"][0]), atol=1e-5, rtol=0)
