from typing import Any

import pytest

from convs2s.train.annealing import Annealing
from tests.presets import params_of

PAPER = params_of("wmt14-en-de-paper").train


@pytest.mark.parametrize(
    ("changes", "perplexities", "expected"),
    [
        # It falls by an order of magnitude after each epoch, even if later ones improve again (T11).
        ({}, [9.0, 8.0, 8.5, 7.0, 6.0], [0.25, 0.25, 0.25, 0.025, 0.0025, 0.00025]),
        ({}, [9.0, 9.0], [0.25, 0.25, 0.025]),  # equal is not better
        # Epoch 2, before annealing may begin, does not beat epoch 1; epoch 3 beats 2, but not 1.
        ({"min_epochs_before_anneal": 3}, [5.0, 8.0, 7.0], [0.25] * 4),
        ({"min_epochs_before_anneal": 3, "anneal_against": "best"}, [5.0, 8.0, 7.0], [0.25] * 3 + [0.025]),
        ({"anneal_after_epoch": 3}, [9.0, 8.0, 7.0], [0.25] * 3 + [0.025]),  # forced
    ],
)
def test_the_rate_falls_once_perplexity_stops_improving(
    changes: dict[str, Any], perplexities: list[float], expected: list[float]
) -> None:
    """From then on it falls after each epoch (§4.2)."""
    rule = Annealing(PAPER.model_copy(update=changes))
    rates = [rule.rate(perplexities[:i]) for i in range(len(perplexities) + 1)]
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"max_epochs": 40}, 40),
        ({"anneal_after_epoch": 5, "max_epochs": 40}, 8),
        ({"anneal_after_epoch": 5, "max_epochs": 7}, 7),
        ({"anneal_after_epoch": 50, "max_epochs": 40}, 40),
        ({"anneal_after_epoch": 1, "anneal_factor": 0.7, "min_learning_rate": 0.1225}, 3),
        ({"anneal_after_epoch": 1, "anneal_factor": 0.1, "min_learning_rate": 0.2}, 1),
    ],
)
def test_the_latest_end_is_known_in_advance(changes: dict[str, Any], most: int) -> None:
    """It is the end of a training whose perplexity improves in each epoch, as by simulation here."""
    rule = Annealing(PAPER.model_copy(update={"max_epochs": 1000} | changes))
    perplexities: list[float] = []
    while rule.ends(perplexities) is None:
        perplexities.append(1000.0 - len(perplexities))
    assert rule.most_epochs() == len(perplexities) == most


FELL = "the learning rate fell below"
TWICE = {"anneal_factor": 0.7, "min_learning_rate": 0.1225, "anneal_after_epoch": 1}


@pytest.mark.parametrize(
    ("changes", "perplexities", "reason"),
    [
        ({}, [9.0, 8.0, 8.5, 7.0, 6.0], None),  # 0.25e-3 is above 1e-4, 0.25e-4 is below
        ({}, [9.0, 8.0, 8.5, 7.0, 6.0, 6.0], f"{FELL} 0.0001"),
        # 0.25 * 0.7 * 0.7 is slightly less than 0.1225 in floating point; it must not end training.
        (TWICE, [9.0, 8.0], None),
        (TWICE, [9.0, 8.0, 7.0], f"{FELL} 0.1225"),
        ({"max_epochs": 3}, [9.0, 8.0], None),
        ({"max_epochs": 1}, [9.0], "it has run for 1 epoch"),
        ({"patience": 2, "min_epochs_before_anneal": 50}, [9.0, 5.0, 6.0], None),
        ({"patience": 2, "min_epochs_before_anneal": 50}, [9.0, 5.0, 6.0, 5.0], "not improved for 2 epochs"),
        ({"patience": 1}, [5.0, 6.0], "validation perplexity has not improved for 1 epoch"),
    ],
)
def test_training_ends_for_a_reason(
    changes: dict[str, Any], perplexities: list[float], reason: str | None
) -> None:
    """It ends at a low learning rate, after epochs without a new best, or after a number of epochs."""
    found = Annealing(PAPER.model_copy(update=changes)).ends(perplexities)
    assert found is None if reason is None else found is not None and found.endswith(reason)
