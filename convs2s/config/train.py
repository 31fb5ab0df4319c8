"""Section train: optimization (§4.2)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.section import Count, Positive, Section, Share
from convs2s.config.selection import SelectionParams


class TrainParams(Section):
    """Optimization (§4.2)."""

    seeds: Annotated[list[Count], Field(min_length=1)]
    """One training, one DVC stage, per seed; their models also form the ensemble."""
    dropout: Share
    """Probability of dropping, on embeddings, block inputs and the decoder output."""
    batch_by: Literal["sentences", "tokens"]
    """`sentences`: an update is over batch_sentences, split at max_tokens (§4.2); `tokens`: over one
    batch of at most max_tokens."""
    batch_sentences: Positive
    """Sentences per update and worker; with `tokens`, at most so many."""
    max_tokens: Positive
    """Padded tokens of one side that are processed at once, per worker."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Of Nesterov's accelerated gradient, at the start."""
    momentum: Annotated[float, Field(gt=0, lt=1)]
    """Of Nesterov's accelerated gradient."""
    clip_norm: Annotated[float, Field(gt=0)]
    """Gradients of a larger norm are scaled down to it."""
    label_smoothing: Share
    """0 in the paper (T36)."""
    anneal_factor: Annotated[float, Field(gt=0, lt=1)]
    """What the learning rate is multiplied by, after each epoch once annealing has begun."""
    anneal_against: Literal["previous", "best"]
    """Annealing begins when an epoch's validation perplexity is not below this epoch's (T11)."""
    min_epochs_before_anneal: Count
    """Epochs before annealing may begin."""
    anneal_after_epoch: Positive | None
    """Annealing begins after this epoch at the latest; null: only when perplexity stops improving."""
    min_learning_rate: Annotated[float, Field(gt=0)]
    """Training ends when the learning rate falls below it."""
    patience: Positive | None
    """Training ends after so many epochs without a new best perplexity; null: never for this reason."""
    max_epochs: Positive
    """Training ends after so many epochs at the latest."""
    precision: Literal["float32", "bfloat16"]
    """Of products; weights, softmax and loss are float32 in any case (T38)."""
    workers: Positive
    """Processes per node, each with its own GPU if there are GPUs."""
    nodes: Positive
    """Machines that train together."""
    rendezvous: str | None
    """host:port of one of them, where they meet; null with one node."""
    selection: SelectionParams | None
    """Target types of a batch, the batch's own ones besides; null: all. With it, perplexities are those
    among the types selected, and the output layer is a plain table (T16)."""
    checkpoint_updates: Positive
    """Updates between checkpoints within an epoch; every epoch ends with one."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds {self.seeds} has a seed twice; wanted different ones")
        if (self.nodes > 1) != (self.rendezvous is not None):
            raise ValueError(
                f"nodes is {self.nodes} but rendezvous is {self.rendezvous}; give host:port exactly when "
                "several nodes train together"
            )
        return self
