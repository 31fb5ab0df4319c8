"""The judge of beam search: real fairseq's hypotheses and scores, for its own weights."""

import numpy as np
import pytest
import torch

from convs2s.decode.beam_search import BeamSearch, Hypothesis
from convs2s.decode.ensemble import Ensemble
from convs2s.model.seq2seq import Seq2Seq
from convs2s.text.vocabulary import EOS, PAD
from tests.golden import NAMES, golden, golden_model, our_ids

SENTENCES = range(12)


def wanted(name: str, beam: int) -> list[list[tuple[list[int], float]]]:
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


def sources(name: str) -> list[torch.Tensor]:
    return [our_ids(golden(name)[f"source_{k}"]) for k in SENTENCES]


def longest(sources: list[torch.Tensor]) -> list[int]:
    """Return fairseq's limits, 1.2 S + 10, where S counts the end mark."""
    return [int(1.2 * len(source) + 10) for source in sources]


def search_all(model: Seq2Seq | Ensemble, name: str, beam: int) -> list[list[Hypothesis]]:
    """Translate all sentences in one batch; at least one token each, which is fairseq's default."""
    batch = torch.nn.utils.rnn.pad_sequence(sources(name), batch_first=True, padding_value=PAD)
    search = BeamSearch(beam, 1.0, 1, beam, legacy_eos=False, keep_attention=False)
    return search.search(model, batch, longest(sources(name)))


def check(found: list[Hypothesis], wanted: list[tuple[list[int], float]]) -> None:
    assert [h.tokens for h in found] == [tokens for tokens, _ in wanted]
    assert [h.score for h in found] == pytest.approx([score for _, score in wanted], abs=1e-5)


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_every_hypothesis_and_score_is_fairseqs(name: str, beam: int) -> None:
    """In one batch, whose sentences of 4 to 30 tokens leave it at different steps."""
    for found, hypotheses in zip(search_all(golden_model(name), name, beam), wanted(name, beam), strict=True):
        check(found, hypotheses)


@pytest.mark.parametrize("name", NAMES)
def test_a_sentence_alone_gives_the_same_hypotheses(name: str) -> None:
    """Padding and company change nothing (T8)."""
    search = BeamSearch(5, 1.0, 1, 5, legacy_eos=False, keep_attention=False)
    for source, hypotheses in list(zip(sources(name), wanted(name, 5), strict=True))[:3]:
        check(search.search(golden_model(name), source[None], longest([source]))[0], hypotheses)


def test_kept_attention_is_that_of_all_positions_at_once() -> None:
    """Rows are reordered at every step; the attention traced back must still be this hypothesis's own."""
    model, source = golden_model("varied"), sources("varied")[0]
    search = BeamSearch(5, 1.0, 1, 5, legacy_eos=False, keep_attention=True)
    for h in search.search(model, source[None], [20])[0]:
        _, attention = model(source[None], torch.tensor([[EOS, *h.tokens[:-1]]]))
        assert h.attention is not None
        torch.testing.assert_close(torch.as_tensor(h.attention), attention[0], atol=1e-5, rtol=0)


def test_an_ensemble_of_a_model_with_itself_is_that_model() -> None:
    """The mean of equal probabilities is the probability."""
    ensemble = Ensemble([golden_model("plain")] * 2)
    for found, hypotheses in zip(search_all(ensemble, "plain", 5), wanted("plain", 5), strict=True):
        check(found, hypotheses)
