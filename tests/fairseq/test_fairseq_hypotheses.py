"""Beam search against the reference: fairseq's hypotheses and scores for its own weights."""

from collections.abc import Callable

import pytest
import torch

from convs2s.engine.decode.model import EngineModel
from convs2s.ids.vocabulary import EOS
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search.ensemble import Ensemble
from convs2s.search.search import SearchModel
from convs2s.search.stepwise_model import StepwiseModel
from tests.decode.parrot import make_search
from tests.golden import NAMES, golden_model
from tests.golden.judge import check_hypotheses, sources

MODELS: dict[str, Callable[[Seq2Seq], SearchModel]] = {
    "plain": StepwiseModel,
    "engine": lambda model: EngineModel(model, "float32"),
    "ensemble": lambda model: Ensemble([StepwiseModel(model), EngineModel(model, "float32")]),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_every_hypothesis_and_score_is_fairseqs(name: str, beam: int, kind: str) -> None:
    """All are in one batch, which sentences of 4 to 30 tokens leave at different steps."""
    check_hypotheses(MODELS[kind](golden_model(name)), name, beam)


def test_kept_attention_is_that_of_all_positions_at_once() -> None:
    """Rows are reordered at every step; the attention traced back must still be that of the hypothesis."""
    model = golden_model("varied")
    source = sources("varied")[0]
    search = make_search(5, min_length=1, keep_attention=True)
    for h in search.search(StepwiseModel(model), source[None], [20])[0]:
        _, attention = model(source[None], torch.tensor([[EOS, *h.tokens[:-1]]]))
        assert h.attention is not None
        torch.testing.assert_close(torch.as_tensor(h.attention), attention[0], atol=1e-5, rtol=0)
