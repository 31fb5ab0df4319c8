"""The likeliest tokens of a row, found by groups, equal those of topk."""

import pytest
import torch

from convs2s.decode.token_scores import FEWEST_GROUPS, GROUP, log_normalizer, top_tokens


@pytest.mark.parametrize("count", [1, 2, 10])
@pytest.mark.parametrize("rest", [0, 5, GROUP - 1])
def test_top_tokens_are_those_of_topk(count: int, rest: int) -> None:
    """The largest may be in one group, in several, or in the remainder."""
    size = GROUP * FEWEST_GROUPS * count + rest
    logits = (torch.arange(40 * size) * 7919 % 1_000_003).float().view(40, size)  # no two are equal
    logits[torch.arange(20), (torch.arange(20) * 37) % size] += 2e6
    if rest:
        logits[20:30, -1] += 2e6
    logits[30:, :GROUP] += 2e6
    values, tokens = top_tokens(logits, count)
    wanted = logits.topk(count, dim=1)
    assert torch.equal(values, wanted.values)
    assert torch.equal(tokens, wanted.indices)


@pytest.mark.fault("numbers")
def test_impossible_tokens_do_not_hide_the_only_possible_one() -> None:
    """At the maximum length, only EOS is left; no token may occur twice."""
    logits = torch.full((3, 2 * GROUP * FEWEST_GROUPS + 1), -torch.inf)
    logits[:, 1] = torch.tensor([0.0, -3.0, 2.0])
    values, tokens = top_tokens(logits, 2)
    assert tokens[:, 0].tolist() == [1, 1, 1]
    assert values.tolist() == [[0.0, -torch.inf], [-3.0, -torch.inf], [2.0, -torch.inf]]
    assert (tokens[:, 0] != tokens[:, 1]).all()


@pytest.mark.fault("numbers")
def test_not_a_number_comes_first() -> None:
    """Beam search recognizes a diverged model by its best candidates."""
    logits = torch.zeros(1, 2 * GROUP * FEWEST_GROUPS)
    logits[0, 77] = torch.nan
    assert top_tokens(logits, 2)[0][0, 0].isnan()


def test_the_normalizer_is_the_log_of_the_sum() -> None:
    """Rows are normalized a few at a time."""
    logits = 30 * torch.sin(torch.arange(7 * 70_000).float()).view(7, -1)
    torch.testing.assert_close(log_normalizer(logits), torch.logsumexp(logits, dim=1))
