"""Section run: how a training runs and what it keeps meanwhile; no result depends on it."""

from typing import Annotated

from pydantic import Field

from convs2s.config.section import Count, Positive, Section


class RunSection(Section):
    """How a training runs and what it keeps meanwhile. No result depends on it, so an edit reruns nothing."""

    checkpoint_updates: Positive
    """Updates between checkpoints within an epoch; every epoch ends with one."""
    checkpoint_minutes: Positive | None
    """Also save a checkpoint when the last one is this old; null: only by updates."""
    checkpoints: str | None
    """Folder or fsspec address (s3://bucket/path) that all machines see. Checkpoints are copied there, and a
    training that moves to another machine goes on from there; null: they stay in data/checkpoints."""
    tensorboard: bool
    """Also write the curves as event files, to data/checkpoints/SEED/tensorboard, for TensorBoard; needs
    `pip install 'convs2s[tensorboard]'`."""
    launcher: Annotated[str, Field(min_length=1)] | None
    """Command that runs the command after it once on each node, such as `srun --nodes=2`; null: only this
    machine trains."""
    rendezvous: str | None
    """With a launcher: host or host:port at which nodes reach this machine; null: its name, a free port."""
    restarts: Count
    """How many times torchrun starts all of several workers again, from the last checkpoint, if one fails."""
