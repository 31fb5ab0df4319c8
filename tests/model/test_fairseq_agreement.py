"""The judge of the model: real fairseq models give the same outputs here."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from convs2s.text.vocabulary import EOS, PAD
from tests.golden import NAMES, golden, golden_model, our_id_order, our_ids

SENTENCES = range(12)


def shifted(target: torch.Tensor) -> torch.Tensor:
    """Return the decoder input: the end mark, then all tokens but the last."""
    return torch.cat([torch.tensor([EOS]), target[:-1]])


@pytest.mark.parametrize("name", NAMES)
def test_logits_attention_and_loss_are_those_of_fairseq(name: str) -> None:
    """Same weights, same function: every value of 12 sentences, one by one."""
    arrays, model = golden(name), golden_model(name)
    blocks, attending = len(model.decoder.blocks), sum(b.attention is not None for b in model.decoder.blocks)
    for k in SENTENCES:
        source, target = our_ids(arrays[f"source_{k}"]), our_ids(arrays[f"target_{k}"])
        logits, attention = model(source[None], shifted(target)[None])
        wanted = torch.as_tensor(arrays[f"logits_{k}"])[:, our_id_order("target")]
        assert_close(logits[0], wanted, atol=1e-4, rtol=0)
        # fairseq divides by all layers, we by those that attend (T7).
        assert_close(
            attention[0] * attending / blocks, torch.as_tensor(arrays[f"attention_{k}"]), atol=1e-5, rtol=0
        )
        loss = F.cross_entropy(logits[0], target)
        assert_close(loss.item(), float(arrays["loss_nats_per_token"][k]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_gives_what_single_sentences_give(name: str) -> None:
    """Padding must change nothing (T8)."""
    arrays, model = golden(name), golden_model(name)
    sources = [our_ids(arrays[f"source_{k}"]) for k in SENTENCES]
    inputs = [shifted(our_ids(arrays[f"target_{k}"])) for k in SENTENCES]
    source = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=PAD)
    target = torch.nn.utils.rnn.pad_sequence(inputs, batch_first=True, padding_value=PAD)
    assert source.min() == PAD  # the sentences do differ in length
    logits, _ = model(source, target)
    order = our_id_order("target")
    for k in SENTENCES:
        wanted = torch.as_tensor(arrays[f"logits_{k}"])[:, order]
        assert_close(logits[k, : len(wanted)], wanted, atol=1e-4, rtol=0)


def test_golden_losses_are_the_mean_of_their_logits() -> None:
    """The files themselves are coherent, so the agreement above says something."""
    arrays = golden("plain")
    logits, target = arrays["logits_0"], arrays["target_0"]
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    loss = -log_probabilities[np.arange(len(target)), target].mean()
    assert_close(float(loss), float(arrays["loss_nats_per_token"][0]), atol=1e-5, rtol=0)
