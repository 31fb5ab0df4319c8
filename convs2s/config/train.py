"""Section train: optimization (§4.2)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.faults import spell_value
from convs2s.config.section import Count, Positive, Processes, Section, Share, later
from convs2s.config.text import SelectionParams
from convs2s.config.translate import SearchPlace

StartFrom = Annotated[str, "train.start_from"]
"""A key that stages take which use no other of its section."""


class TrainParams(Section):
    """Optimization (§4.2)."""

    start_from: StartFrom
    """Model folder, trained or imported, whose weights and vocabulary training starts from; data/none: random
    weights."""
    dropout: Share
    """Probability of dropping, on embeddings, block inputs and the decoder output."""
    batch_by: Literal["sentences", "tokens"]
    """`sentences`: an update uses batch_sentences sentences, split at max_tokens (§4.2); `tokens`: it uses
    one batch of at most max_tokens."""
    batch_sentences: Positive
    """Sentences per update and worker; with `tokens`, an upper limit."""
    max_tokens: Positive
    """Padded tokens per side that a worker processes at once; with `tokens` and several workers, a worker may
    get one extra sentence."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Learning rate before annealing; with warmup_updates, the highest."""
    momentum: Annotated[float, Field(gt=0, lt=1)]
    """Momentum of Nesterov's accelerated gradient."""
    optimizer: Literal["nesterov", "adam"]
    """Nesterov's accelerated gradient (§4.2), or Adam (Kingma & Ba, 2015), which ignores momentum."""
    warmup_updates: Positive | None
    """The learning rate rises linearly for this many updates, then falls with the inverse square root of
    their number (Vaswani et al., 2017); null: it is constant until annealing begins."""
    clip_norm: Annotated[float, Field(gt=0)]
    """Gradients with a larger norm are scaled down to it."""
    label_smoothing: Share
    """0 in the paper (T36)."""
    tied_embeddings: bool
    """Train one table for target embeddings and the output layer (Press & Wolf, 2017)."""
    validate_updates: Positive | None
    """Updates after which to validate; what other keys call an epoch is then this many updates. null: a pass
    through the training data."""
    anneal_factor: Annotated[float, Field(gt=0, lt=1)]
    """Multiplies the learning rate after each epoch, once annealing has begun."""
    anneal_against: Literal["previous", "best"]
    """Annealing begins when an epoch's validation perplexity fails to beat that of the previous epoch or of
    the best one so far (T11)."""
    min_epochs_before_anneal: Count
    """Epochs before annealing may begin."""
    anneal_after_epoch: Positive | None
    """Annealing begins after this epoch at the latest; null: only when perplexity stops improving."""
    min_learning_rate: Annotated[float, Field(gt=0)]
    """Training ends when annealing lowers learning_rate below it."""
    patience: Positive | None
    """Training ends after this many epochs without a new best perplexity; null: no such limit."""
    max_epochs: Positive
    """Training ends after this many epochs at the latest."""
    average: Positive
    """The model has the mean weights of this many epochs, those with the lowest perplexity."""
    precision: Literal["auto", "float32", "bfloat16"]
    """Precision of matrix products and of the gradients that workers exchange; weights, softmax and loss are
    always float32 (T38). `auto`: bfloat16 where the processor or GPU multiplies it faster, else float32."""
    compile: bool
    """Compile the model and its loss with torch.compile, which takes a minute at the start and needs a C++
    compiler; on a CPU, this replaces our own compiled layers."""
    graphs: bool = later(False, since="1.2.0")
    """On a GPU, record updates of frequent shapes as CUDA graphs, each of which the host starts as one
    operation; lengths are padded to multiples of 8, so that shapes repeat. For one process that batches by
    sentences, without compile and selection; ignored on a CPU. No GPU has run it yet."""
    workers: Processes
    """Shares of an update per node: an update grows with their number. Each has a process, with its own GPU
    if there are GPUs, unless run.processes says otherwise."""
    nodes: Annotated[int, Field(ge=1, le=2**16)]
    """Machines that train together."""
    selection: SelectionParams | None
    """Target entries scored in a batch, in addition to those that occur in it; null: the whole vocabulary.
    With a selection, perplexities are over the selected entries, and the output layer is a plain lookup table
    (T16)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.average > self.max_epochs:
            raise ValueError(
                f"expected average of at most max_epochs, {self.max_epochs}, found {self.average}"
            )
        return self

    @model_validator(mode="after")
    def _updates_can_be_recorded(self) -> Self:
        needed = {"batch_by": "sentences", "compile": False, "workers": 1, "nodes": 1, "selection": None}
        for name, value in needed.items():
            found = getattr(self, name)
            if self.graphs and found != value:
                raise ValueError(
                    f"expected {name}: {spell_value(value)} with graphs: true, found {spell_value(found)}"
                )
        return self


class RunSection(Section):
    """How training and search run. No result depends on it, so an edit reruns nothing."""

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
    processes: Processes | None = later(None, since="1.2.0")
    """Processes of a training per node, if fewer than train.workers, whose shares they then compute in turn.
    Updates are the same but for rounding, so that a training of 8 GPUs can go on with 4; null: as many."""
    search: SearchPlace = later("auto", since="1.2.0")
    """Where beam search keeps its hypotheses: on the `host`, which waits for each step; or on the `device`,
    which the host gives eight steps at a time. `auto`: `device` on a GPU, else `host`."""


def count_processes(train: TrainParams, run: RunSection) -> int:
    """Return how many processes train on each node."""
    return min(run.processes or train.workers, train.workers)
