"""The cost of a training: hardware, time and speed, by session: a stretch between two interruptions.

A checkpoint has the sessions up to it, so that work that was lost afterwards is not counted.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Session = dict[str, Any]
"""`device`, `unit`, `count` and `torch`: of the hardware; `precision`: of products on it; `seconds` in all,
`training_seconds` of the updates alone; `target_tokens`: without padding, over all workers."""


class Meter:
    """Counts the seconds and target tokens of a session, which it adds to the earlier ones."""

    def __init__(self, sessions: list[Session], hardware: Mapping[str, object]) -> None:
        self.session: Session = {**hardware, "seconds": 0.0, "training_seconds": 0.0, "target_tokens": 0}
        sessions.append(self.session)
        self.start = time.perf_counter()

    def count(self, seconds: float = 0.0, target_tokens: int = 0) -> None:
        """Count an update; without arguments, only the time that has passed since the last one."""
        self.session["seconds"] = time.perf_counter() - self.start
        self.session["training_seconds"] += seconds
        self.session["target_tokens"] += target_tokens


def sum_up(sessions: Sequence[Session]) -> dict[str, str | float]:
    """Return the cost of all sessions together, by title; hours are multiplied by the number of devices."""
    hours = defaultdict[str, float](float)
    for session in sessions:
        hours[f"{session['unit']}-hours"] += session["seconds"] * session["count"] / 3600
    tokens, seconds = (
        sum(session[key] for session in sessions) for key in ("target_tokens", "training_seconds")
    )
    return {
        "hardware": join(f"{session['count']} x {session['device']}" for session in sessions),
        **{unit: round(value, 4) for unit, value in hours.items()},
        **({"target tokens/s": round(tokens / seconds)} if seconds else {}),
        "products in": join(session["precision"] for session in sessions),
        "PyTorch": join(session["torch"] for session in sessions),
    }


def join(texts: Iterable[str]) -> str:
    """Return the different texts, in the order in which they first occur."""
    return ", ".join(dict.fromkeys(texts))
