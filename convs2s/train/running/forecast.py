"""When a training ends at the latest, said after its first minute."""

import time

from convs2s.base.messages import inflect
from convs2s.train.training import Training

FIRST = 60.0
"""Seconds of training after which its speed is known well enough."""


class Forecast:
    """Notes how long updates take, until the forecast is made; a resumed training makes another."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._seconds = 0.0
        self._updates = 0
        self._tokens = 0
        self._is_made = False

    def add_update(self, seconds: float, tokens: int, batch: int, batches: int) -> str | None:
        """Note an update; return the forecast once there has been enough training.

        Args:
            tokens: target tokens.
            batch: number of the update in its epoch, from 1.
            batches: updates of an epoch.
        """
        self._seconds += seconds
        self._updates += 1
        self._tokens += tokens
        if self._is_made or self._seconds < FIRST:
            return None
        self._is_made = True
        return self._describe(batch, batches)

    def _describe(self, batch: int, batches: int) -> str:
        """Return a sentence: when, and after how many epochs and updates."""
        epochs = self._training.annealing.most_epochs()
        left = epochs - len(self._training.state.epochs)
        of_update = self._seconds / self._updates
        # Validation takes less time per token than training.
        of_validation = int(self._training.valid.target.lengths.sum()) * self._seconds / self._tokens
        seconds = (left * batches - batch) * of_update + left * of_validation
        end = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + seconds))
        return (
            f"At this speed, training ends in {show_duration(seconds)}, on {end}, at the latest: after "
            f"{inflect(epochs, 'epoch')} of {inflect(batches, 'update')}, {epochs * batches:,} in all."
        )


def show_duration(seconds: float) -> str:
    """Return a duration in its two largest units, rounded up: 3 d 4 h, 2 h 5 min, 7 min."""
    minutes = int(seconds // 60) + 1
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
