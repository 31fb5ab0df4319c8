"""Recorded steps, which on a CPU are done each time, in the memory that a GPU would use again."""

from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

from convs2s.decode.recordings import Recordings


@dataclass(frozen=True)
class State:
    """What a model may remember."""

    steps: int
    windows: tuple[Tensor, ...]
    others: list[Tensor | None]


def double(state: State) -> State:
    """Return the state after a step."""
    windows = tuple(2 * window for window in state.windows)
    return State(state.steps + 1, windows, state.others)


def make_state(number: float, steps: int = 0) -> State:
    return State(
        steps, (torch.full((2,), number), torch.full((3, 1), -number)), [torch.tensor([number]), None]
    )


def test_arguments_are_found_wherever_they_are() -> None:
    """A tensor that is overlooked would keep the numbers of the time when it was recorded."""
    recordings = Recordings(None)
    for number in (1.0, 5.0):
        for steps in (0, 8):
            state = recordings.run(double, "double", (make_state(number, steps),))
            assert state.steps == steps + 1
            assert [window.tolist() for window in state.windows] == [[2 * number] * 2, [[-2 * number]] * 3]
            assert state.others[0].tolist() == [number]
            assert state.others[1] is None


@pytest.mark.parametrize("kind", ["step", "look"])
def test_work_is_recorded_once_for_each_kind_and_shape(kind: str) -> None:
    """Recording takes as long as several steps."""
    recordings = Recordings(None)
    with mock.patch.object(recordings, "_record", side_effect=lambda work, _: work) as record:
        for number in (1.0, 2.0):
            recordings.run(double, kind, (make_state(number),))
            recordings.run(double, "another", (make_state(number),))
            recordings.run(double, kind, (State(0, (), [torch.zeros(4)]),))
    assert record.call_count == 3


def test_results_may_be_arguments() -> None:
    """A look goes on from where the last one ended; what is in its place already is not copied."""
    recordings = Recordings(None)
    state = make_state(1.0)
    for _ in range(3):
        state = recordings.run(double, "double", (state,))
    assert state.windows[0].tolist() == [8.0, 8.0]


def test_earlier_recordings_go_if_memory_is_short() -> None:
    """Each keeps its results; without this rule a long text with many shapes would fill the GPU."""
    recordings = Recordings(None)
    with mock.patch("convs2s.decode.recordings.is_short_of_memory", return_value=True):
        for width in range(1, 5):
            result = recordings.run(lambda x: x + 1, "add", (torch.zeros(width),))
            assert result.tolist() == [1.0] * width
    assert len(recordings._recorded) == len(recordings._places) == 1


@pytest.mark.parametrize("value", [{"windows": torch.zeros(1)}, torch.nn.Linear(1, 1)])
def test_what_cannot_be_copied_is_named(value: Any) -> None:
    """A tensor in a dictionary would be recorded with the numbers that it has now."""
    with pytest.raises(TypeError, match=f"found {type(value).__name__}. Choose search: device"):
        Recordings(None).run(lambda x, _: x, "any", (torch.zeros(1), value))
