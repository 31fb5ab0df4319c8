"""When the learning rate falls, and when training ends (§4.2, T11)."""

from dataclasses import dataclass

from convs2s.base.messages import inflect


@dataclass(frozen=True)
class Annealing:
    """The annealing rule; perplexities are those of the validation set, one per epoch.

    Attributes:
        learning_rate: at the start.
        factor: multiplies the learning rate after each epoch, once annealing has begun.
        minimum: training ends when the learning rate falls below it.
        against_best: annealing begins when an epoch is no better than the best earlier epoch; if False, no
            better than the previous epoch, as in the authors' code.
        min_epochs: annealing begins after this epoch at the earliest.
        after_epoch: annealing begins after this epoch at the latest; None for no limit.
        patience: training ends after this many epochs without a new best; None for no limit.
        max_epochs: training ends after this many epochs.
    """

    learning_rate: float
    factor: float
    minimum: float
    against_best: bool
    min_epochs: int
    after_epoch: int | None
    patience: int | None
    max_epochs: int

    def rate(self, perplexities: list[float]) -> float:
        """Return the learning rate of the next epoch."""
        begins = self._begins(perplexities)
        steps = 0 if begins is None else len(perplexities) - begins + 1
        return float(self.learning_rate * self.factor**steps)

    def ends(self, perplexities: list[float]) -> str | None:
        """Return the reason why training ends after these epochs, or None if it continues."""
        if not perplexities:
            return None
        # The factor 1 - 1e-9 allows for rounding: 0.25 * 0.7 ** 2 is slightly less than 0.1225.
        if self.rate(perplexities) < self.minimum * (1 - 1e-9):
            return f"the learning rate fell below {self.minimum:g}"
        since_best = len(perplexities) - 1 - perplexities.index(min(perplexities))
        if self.patience is not None and since_best >= self.patience:
            return f"validation perplexity has not improved for {inflect(since_best, 'epoch')}"
        if len(perplexities) >= self.max_epochs:
            return f"it has run for {inflect(self.max_epochs, 'epoch')}"
        return None

    def ended_before(self, perplexities: list[float], within_epoch: bool) -> int | None:
        """Return the number of the epoch after which training had already ended; None if it had not.

        Args:
            within_epoch: whether the next epoch has begun.
        """
        followed = len(perplexities) if within_epoch else len(perplexities) - 1
        return next((n for n in range(1, followed + 1) if self.ends(perplexities[:n]) is not None), None)

    def _begins(self, perplexities: list[float]) -> int | None:
        """Return the number (from 1) of the epoch after which the rate first falls."""
        for epoch in range(1, len(perplexities) + 1):
            if self.after_epoch is not None and epoch >= self.after_epoch:
                return epoch
            earlier = perplexities[: epoch - 1]
            if earlier and epoch >= self.min_epochs:
                reference = min(earlier) if self.against_best else earlier[-1]
                if not perplexities[epoch - 1] < reference:
                    return epoch
        return None
