"""When the learning rate falls, and when training ends (§4.2, T11)."""

from dataclasses import dataclass

from convs2s.base.messages import inflect
from convs2s.config.train import TrainParams


@dataclass(frozen=True)
class Annealing:
    """The annealing rule; perplexities are those of the validation set, one per epoch."""

    params: TrainParams

    def rate(self, perplexities: list[float]) -> float:
        """Return the learning rate of the next epoch."""
        begins = self._begins(perplexities)
        steps = 0 if begins is None else len(perplexities) - begins + 1
        return float(self.params.learning_rate * self.params.anneal_factor**steps)

    def ends(self, perplexities: list[float]) -> str | None:
        """Return the reason why training ends after these epochs, or None if it continues."""
        if not perplexities:
            return None
        # The factor 1 - 1e-9 allows for rounding: 0.25 * 0.7 ** 2 is slightly less than 0.1225.
        if self.rate(perplexities) < self.params.min_learning_rate * (1 - 1e-9):
            return f"the learning rate fell below {self.params.min_learning_rate:g}"
        since_best = len(perplexities) - 1 - perplexities.index(min(perplexities))
        if self.params.patience is not None and since_best >= self.params.patience:
            return f"validation perplexity has not improved for {inflect(since_best, 'epoch')}"
        if len(perplexities) >= self.params.max_epochs:
            return f"it has run for {inflect(self.params.max_epochs, 'epoch')}"
        return None

    def most_epochs(self) -> int:
        """Return after how many epochs training ends at the latest, whatever the perplexities."""
        latest = self.params.anneal_after_epoch
        if latest is None:
            return self.params.max_epochs
        epochs = latest
        rate = self.params.learning_rate * self.params.anneal_factor
        while rate >= self.params.min_learning_rate * (1 - 1e-9) and epochs < self.params.max_epochs:
            rate *= self.params.anneal_factor
            epochs += 1
        return min(epochs, self.params.max_epochs)

    def ended_before(self, perplexities: list[float], within_epoch: bool) -> int | None:
        """Return the number of the epoch after which training had already ended; None if it had not.

        Args:
            within_epoch: whether the next epoch has begun.
        """
        followed = len(perplexities) if within_epoch else len(perplexities) - 1
        return next((n for n in range(1, followed + 1) if self.ends(perplexities[:n]) is not None), None)

    def _begins(self, perplexities: list[float]) -> int | None:
        """Return the number (from 1) of the epoch after which the rate first falls."""
        latest = self.params.anneal_after_epoch
        for epoch in range(1, len(perplexities) + 1):
            if latest is not None and epoch >= latest:
                return epoch
            earlier = perplexities[: epoch - 1]
            if earlier and epoch >= self.params.min_epochs_before_anneal:
                reference = min(earlier) if self.params.anneal_against == "best" else earlier[-1]
                if not perplexities[epoch - 1] < reference:
                    return epoch
        return None
