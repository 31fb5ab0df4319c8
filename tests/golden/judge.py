"""Comparison of a model with a golden one: every logit, attention, loss, hypothesis and score."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from convs2s.fairseq.weights import order_ids
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search.search import SearchModel
from tests.decode.parrot import make_search
from tests.golden import FAIRSEQ_SIZES, golden, our_ids

SENTENCES = range(12)


def check_outputs(model: Seq2Seq, name: str) -> None:
    """Assert that a model gives fairseq's logits, attention and losses, sentence by sentence."""
    arrays = golden(name)
    blocks = len(model.decoder.blocks)
    attending = sum(b.attention is not None for b in model.decoder.blocks)
    for k in SENTENCES:
        source, target = our_ids(arrays[f"source_{k}"]), our_ids(arrays[f"target_{k}"])
        logits, attention = model(source[None], torch.cat([torch.tensor([EOS]), target[:-1]])[None])
        expected = torch.as_tensor(arrays[f"logits_{k}"])[:, order_ids(FAIRSEQ_SIZES["target"])]
        assert_close(logits[0], expected, atol=1e-4, rtol=0)
        # fairseq divides by the number of all layers, we by that of the attending ones (T7).
        assert_close(
            attention[0] * attending / blocks, torch.as_tensor(arrays[f"attention_{k}"]), atol=1e-5, rtol=0
        )
        loss = F.cross_entropy(logits[0], target)
        assert_close(loss.item(), float(arrays["loss_nats_per_token"][k]), atol=1e-5, rtol=0)


def sources(name: str) -> list[torch.Tensor]:
    return [our_ids(golden(name)[f"source_{k}"]) for k in SENTENCES]


def wanted_hypotheses(name: str, beam: int) -> list[list[tuple[list[int], float]]]:
    """Return fairseq's hypotheses with their scores, best first, for each sentence."""
    arrays = golden(name)
    ends = np.cumsum(arrays["hypotheses/length"])
    results: list[list[tuple[list[int], float]]] = [[] for _ in SENTENCES]
    for key, score, end, length in zip(
        arrays["hypotheses/key"], arrays["hypotheses/score"], ends, arrays["hypotheses/length"], strict=True
    ):
        if key[0] == beam:
            ids = our_ids(arrays["hypotheses/ids"][end - length : end]).tolist()
            results[key[1]].append(([*ids, EOS], float(score)))
    return results


def check_hypotheses(model: SearchModel, name: str, beam: int) -> None:
    """Assert that a search finds all of fairseq's hypotheses, in one batch, with at least one token each."""
    batch = torch.nn.utils.rnn.pad_sequence(sources(name), batch_first=True, padding_value=PAD)
    search = make_search(beam, min_length=1)
    limits = [int(1.2 * len(source) + 10) for source in sources(name)]  # fairseq's; S counts EOS
    found = search.search(model, batch, limits)
    for hypotheses, wanted in zip(found, wanted_hypotheses(name, beam), strict=True):
        assert [h.tokens for h in hypotheses] == [tokens for tokens, _ in wanted]
        assert [h.score for h in hypotheses] == pytest.approx([score for _, score in wanted], abs=1e-5)
