"""The progress bar, read back."""

import io

import pytest
from tqdm import tqdm

from pipelines.flows.progress import Position, position


def test_a_bar_of_tqdm_is_understood() -> None:
    """The format is another project's, so it is read from a real bar."""
    out = io.StringIO()
    with tqdm(total=594, initial=150, desc="epoch 12", unit="update", file=out, mininterval=0) as bar:
        bar.set_postfix_str("loss 2.483, gradient norm 0.875, learning rate 0.25, 11,801 tokens/s")
        bar.update(28)
    seen = [position(line) for line in out.getvalue().split("\r") if line.strip()]
    last = seen[-1]
    assert last is not None
    assert (last.epoch, last.done, last.updates) == (12, 178, 594)
    assert last.left.count(":") >= 1


@pytest.mark.parametrize(
    "line",
    [
        "",
        "epoch 1: 594 updates, learning rate 0.25, training loss 5.227, validation perplexity 31.391 (best)",
        "tokenize: 40.0k lines [00:03, 11.6k lines/s]",
        "  0%|          | 0/3 [00:00<?, ?files/s]",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    """They belong into the log."""
    assert position(line) is None


def test_the_share_is_of_all_epochs_if_their_number_is_known() -> None:
    """Else of the one that runs."""
    half = Position(epoch=2, done=50, updates=100, left="00:10")
    assert half.share(4) == 37.5
    assert half.share(None) == 50.0
    assert half.text(4) == "epoch 2 of at most 4: 50 of 100 updates, 00:10 left in this epoch"
    assert half.text(None) == "epoch 2: 50 of 100 updates, 00:10 left in this epoch"
