import dataclasses

import pytest

from convs2s.train.annealing import Annealing

PAPER = Annealing(
    0.25, 0.1, 1e-4, against_best=False, min_epochs=0, after_epoch=None, patience=None, max_epochs=100
)


def rates(rule: Annealing, perplexities: list[float]) -> list[float]:
    return [rule.rate(perplexities[:i]) for i in range(len(perplexities) + 1)]


def test_the_rate_falls_after_every_epoch_once_perplexity_stops_improving() -> None:
    """§4.2: it falls by an order of magnitude after each epoch, even if later ones improve again (T11)."""
    assert rates(PAPER, [9.0, 8.0, 8.5, 7.0, 6.0]) == pytest.approx(
        [0.25, 0.25, 0.25, 0.025, 0.0025, 0.00025]
    )


def test_training_ends_when_the_rate_falls_below_the_minimum() -> None:
    """0.25e-3 is above 1e-4, 0.25e-4 is below."""
    assert PAPER.ends([9.0, 8.0, 8.5, 7.0, 6.0]) is None
    assert "learning rate fell below 0.0001" in str(PAPER.ends([9.0, 8.0, 8.5, 7.0, 6.0, 6.0]))


def test_a_training_can_have_gone_on_beyond_its_end() -> None:
    """At exactly the end it has not; once another epoch has begun, it has."""
    two = dataclasses.replace(PAPER, max_epochs=2)
    assert two.ended_before([], within_epoch=True) is None
    assert two.ended_before([9.0], within_epoch=True) is None
    assert two.ended_before([9.0, 8.0], within_epoch=False) is None
    assert two.ended_before([9.0, 8.0], within_epoch=True) == 2
    assert two.ended_before([9.0, 8.0, 7.0], within_epoch=False) == 2
    patient = dataclasses.replace(PAPER, patience=2)
    worse = [9.0, 9.5, 9.5, 8.0]  # a later best does not count
    assert patient.ended_before(worse, within_epoch=False) == 3


def test_equal_is_not_better() -> None:
    """An epoch with the same perplexity has stopped improving."""
    assert PAPER.rate([9.0, 9.0]) == pytest.approx(0.025)


def test_an_epoch_is_compared_with_the_previous_or_the_best() -> None:
    """Epoch 2, before annealing may begin, does not beat epoch 1; epoch 3 beats 2, but not 1 (T11)."""
    late = dataclasses.replace(PAPER, min_epochs=3)
    assert late.rate([5.0, 8.0, 7.0]) == pytest.approx(0.25)
    assert dataclasses.replace(late, against_best=True).rate([5.0, 8.0, 7.0]) == pytest.approx(0.025)


def test_annealing_can_be_forced_after_an_epoch() -> None:
    """PEERS' schedule: 0.25 for six epochs, 0.025 in the seventh."""
    rule = dataclasses.replace(PAPER, after_epoch=6, max_epochs=7)
    assert rates(rule, [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]) == pytest.approx([0.25] * 6 + [0.025])
    assert rule.ends([9.0, 8.0, 7.0, 6.0, 5.0, 4.0]) is None
    assert rule.ends([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0]) == "it has run for 7 epochs"


def test_patience_counts_epochs_without_a_new_best() -> None:
    """Early stopping does not depend on the learning rate."""
    rule = dataclasses.replace(PAPER, patience=2, min_epochs=50)
    assert rule.ends([9.0, 5.0, 6.0]) is None
    assert rule.ends([9.0, 5.0, 6.0, 5.0]) == "validation perplexity has not improved for 2 epochs"
    once = dataclasses.replace(rule, patience=1, min_epochs=1)
    assert once.ends([5.0, 6.0]) == "validation perplexity has not improved for 1 epoch"
    assert dataclasses.replace(PAPER, max_epochs=1).ends([9.0]) == "it has run for 1 epoch"


def test_a_minimum_reached_exactly_is_not_below_it() -> None:
    """0.25 * 0.1 * 0.1 is not exactly 0.0025 in floating point; it must not end training."""
    rule = dataclasses.replace(PAPER, minimum=0.0025, after_epoch=1)
    assert rule.ends([9.0, 8.0]) is None
    assert rule.ends([9.0, 8.0, 7.0]) is not None
