"""Stage train@SEED: encoded pairs -> the best model of one training, its metrics and curves."""

import json
import os
import shutil
import sys
from pathlib import Path

import torch
from dvclive import Live
from tqdm import tqdm

from convs2s.config.model import ModelParams
from convs2s.config.train import TrainParams
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import save_model
from convs2s.text.corpus.batching import Batching
from convs2s.text.corpus.encoded import EncodedCorpus
from convs2s.text.corpus.files import atomic_path
from convs2s.text.vocabulary.selection import VocabularySelection
from convs2s.text.vocabulary.vocabulary import PAD, read_vocabulary
from convs2s.train.annealing import Annealing
from convs2s.train.checkpoint import fingerprint, resume, save_checkpoint
from convs2s.train.cost import Meter, keep_cost, remove_all_but, timed
from convs2s.train.distributed import Workers, join_workers
from convs2s.train.loop import EpochReport, Pairs, Record, State, Training, UpdateReport, train
from convs2s.train.memory import keep_freed_memory
from convs2s.train.optimizer import nesterov

# Not part of a checkpoint's fingerprint: they say how long to go on and how often to save, not where to.
OF_NO_EFFECT = {
    "seeds",
    "max_epochs",
    "patience",
    "min_learning_rate",
    "checkpoint_updates",
    "nodes",
    "rendezvous",
}


def run(
    model_params: ModelParams,
    params: TrainParams,
    seed: int,
    encoded: Path,
    vocabulary: Path,
    candidates: Path,
    work: Path,
    out: Path,
) -> None:
    """Train in this process, or in this one and those that torchrun has started beside it.

    Checkpoints live in `work`, which outlasts an interruption; `out` gets model/, metrics.json and curves/.
    Of a finished training `work` keeps costs/: hardware, time and speed, in a file named by the model's hash.
    """
    if params.workers * params.nodes > 1 and "RANK" not in os.environ:
        start_workers(params, seed)
    with join_workers(params.workers) as workers:
        keep_freed_memory()
        table = candidates / "candidates.npz"
        training = make_training(model_params, params, seed, encoded, vocabulary, table, workers)
        prints = prints_of(model_params, params, seed, encoded, table, workers)
        message = resume(work / "checkpoint.safetensors", training, prints)
        workers.barrier()  # nobody writes a checkpoint while another still reads the old one
        if not workers.writes:
            for _ in train(training):
                pass
            return
        print(message, file=sys.stderr)
        watch(training, model_params, params.checkpoint_updates, prints, work)
        export(training, work, out)


def prints_of(
    model_params: ModelParams,
    params: TrainParams,
    seed: int,
    encoded: Path,
    candidates: Path,
    workers: Workers,
) -> dict[str, str]:
    """Return what this training depends on; without selection as before there was any."""
    left_out = OF_NO_EFFECT | {"workers"} | (set() if params.selection else {"selection"})
    files = [
        encoded / split / f"{side}.{array}.npy"
        for split in ("train", "valid")
        for side in ("source", "target")
        for array in ("ids", "offsets")
    ]
    return fingerprint(
        {"seed": seed, "workers": workers.count, "model": model_params.model_dump()}
        | {k: v for k, v in params.model_dump().items() if k not in left_out},
        [*files, candidates] if params.selection else files,
    )


def make_training(
    model_params: ModelParams,
    params: TrainParams,
    seed: int,
    encoded: Path,
    vocabulary: Path,
    candidates: Path,
    workers: Workers,
) -> Training:
    """Build model, optimizer and data of a training that has not begun; `candidates` is a file."""
    train_pairs, valid_pairs = (
        Pairs(*(EncodedCorpus.open(encoded / split, side) for side in ("source", "target")))
        for split in ("train", "valid")
    )
    sizes = [len(read_vocabulary(vocabulary / f"{side}.tsv")) for side in ("source", "target")]
    if workers.device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.set_float32_matmul_precision("highest")
    torch.manual_seed(seed)
    wanted = params.selection
    model = Seq2Seq(
        model_params, sizes[0], sizes[1], PAD, params.dropout, plain_output=wanted is not None
    ).to(workers.device)
    for name, pairs in (("train", train_pairs), ("valid", valid_pairs)):
        check_lengths(encoded / name, pairs, model)
    return Training(
        model=model,
        optimizer=nesterov(model.parameters(), params.learning_rate, params.momentum),
        train=train_pairs,
        valid=valid_pairs,
        batching=Batching(
            params.batch_by == "sentences", params.batch_sentences, params.max_tokens, workers.count
        ),
        annealing=Annealing(
            params.learning_rate,
            params.anneal_factor,
            params.min_learning_rate,
            params.anneal_against == "best",
            params.min_epochs_before_anneal,
            params.anneal_after_epoch,
            params.patience,
            params.max_epochs,
        ),
        workers=workers,
        seed=seed,
        clip_norm=params.clip_norm,
        smoothing=params.label_smoothing,
        precision=getattr(torch, params.precision),
        selection=(
            VocabularySelection.load(candidates, wanted.common, wanted.candidates, sizes[1])
            if wanted
            else None
        ),
    )


def check_lengths(folder: Path, pairs: Pairs, model: Seq2Seq) -> None:
    """See that every sentence fits the position tables.

    Raises:
        ValueError: if one does not, or there are no pairs, or the sides differ in number.
    """
    if len(pairs.source) != len(pairs.target) or not len(pairs.source):
        raise ValueError(
            f"{folder} has {len(pairs.source):,} source and {len(pairs.target):,} target sentences. "
            "Wanted as many of one as of the other, and some: run the stages before again "
            "(dvc repro -f encode)."
        )
    for side, corpus, most in (
        ("source", pairs.source, model.max_source_tokens),
        ("target", pairs.target, model.max_target_tokens),
    ):
        longest = int(corpus.lengths.argmax())
        if most is not None and corpus.lengths[longest] > most:
            raise ValueError(
                f"{folder}, {side} sentence {longest + 1:,} has {corpus.lengths[longest]:,} tokens, its end "
                f"mark counted, but the position table holds {most:,}. Raise model.max_positions, or lower "
                "filter.max_words."
            )


def watch(
    training: Training, model_params: ModelParams, checkpoint_updates: int, prints: dict[str, str], work: Path
) -> None:
    """Train to the end: show progress, draw curves, save checkpoints."""
    state = training.state
    work.mkdir(parents=True, exist_ok=True)
    checkpoint = work / "checkpoint.safetensors"
    source_size = training.model.source_embedding.words.num_embeddings
    target_size = training.model.target_embedding.words.num_embeddings
    with Live(
        str(work / "live"), dvcyaml=None, report=None, save_dvc_exp=False, monitor_system=False
    ) as live:
        meter = Meter(work / "cost.json", training.workers, state.updates)
        replay(live, state)  # what an interrupted training had drawn after its checkpoint is drawn again
        progress = Progress()
        for report, seconds in timed(train(training)):
            if isinstance(report, UpdateReport):
                meter.count(report.target_tokens, seconds)
                progress.show(report, state, seconds)
                if state.curve and state.curve[-1]["update"] == report.update:
                    draw_point(live, state.curve[-1])
                if report.update % checkpoint_updates == 0:
                    meter.save(state.updates)
                    save_checkpoint(checkpoint, training, prints)
            else:
                progress.epoch(report, seconds)
                draw_epoch(live, report.record)
                if report.is_best:
                    with atomic_path(work / "best") as best:
                        save_model(best, training.model, model_params, source_size, target_size, PAD)
                meter.save(state.updates)
                save_checkpoint(checkpoint, training, prints)


class Progress:
    """A bar an epoch: loss, gradient norm, learning rate, tokens/s, time left; and a line at its end.

    Tokens are those of the target, and seconds those of updates, without validation and checkpoints.
    """

    def __init__(self) -> None:
        self.bar: tqdm | None = None
        self.tokens = 0
        self.seconds = 0.0

    def show(self, report: UpdateReport, state: State, seconds: float) -> None:
        """Advance the bar by an update, which took so long."""
        if self.bar is None:
            self.bar = tqdm(
                total=report.batches,
                initial=state.batch - 1,
                desc=f"epoch {report.epoch}",
                unit="update",
                mininterval=1.0 if sys.stderr.isatty() else 20.0,  # a log needs no bar every second
                file=sys.stderr,
            )
        self.tokens += report.target_tokens
        self.seconds += seconds
        types = "" if report.selected is None else f"{report.selected:,.0f} target types, "
        self.bar.set_postfix_str(
            f"loss {report.loss:.3f}, gradient norm {report.gradient_norm:.3f}, learning rate "
            f"{report.learning_rate:g}, {types}{self.tokens / self.seconds:,.0f} tokens/s",
            refresh=False,
        )
        self.bar.update()

    def epoch(self, report: EpochReport, seconds: float) -> None:
        """End the bar and print what the epoch came to; its validation took so long."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
        record = report.record
        types = f"{record['selected_types']:,.0f} target types, " if "selected_types" in record else ""
        # A training that was interrupted in a validation has no update before its end.
        speed = f", {self.tokens / self.seconds:,.0f} target tokens/s" if self.seconds else ""
        print(
            f"epoch {record['epoch']:.0f}: {record['updates']:,.0f} updates, learning rate "
            f"{record['learning_rate']:g}, training loss {record['training_loss']:.3f}, validation "
            f"perplexity {record['validation_perplexity']:.3f}{' (best)' if report.is_best else ''}, "
            f"{types}training {self.seconds:.1f} s{speed}, validation {seconds:.1f} s",
            file=sys.stderr,
        )
        self.tokens, self.seconds = 0, 0.0


def replay(live: Live, state: State) -> None:
    """Draw the curves of a resumed training anew."""
    for point in state.curve:
        draw_point(live, point)
    for record in state.epochs:
        draw_epoch(live, record)


def draw_point(live: Live, point: Record) -> None:
    """Draw a point of the training curve."""
    live.step = int(point["update"])
    for name in ("loss", "gradient_norm", "learning_rate"):
        live.log_metric(f"train/{name}", point[name])


def draw_epoch(live: Live, record: Record) -> None:
    """Draw a point of the validation curve."""
    live.step = int(record["updates"])
    live.log_metric("valid/perplexity", record["validation_perplexity"])


def export(training: Training, work: Path, out: Path) -> None:
    """Put the best model, metrics and curves in their place; then the checkpoints may go."""
    state = training.state
    best = min(state.epochs, key=lambda record: record["validation_perplexity"])
    metrics = {
        "validation_perplexity": best["validation_perplexity"],
        "validation_loss": best["validation_loss"],
        "training_loss": best["training_loss"],
        "best_epoch": best["epoch"],
        "epochs": len(state.epochs),
        "updates": state.updates,
        "parameters": sum(p.numel() for p in training.model.parameters()),
    }
    if "selected_types" in best:
        metrics["selected_types"] = best["selected_types"]
    out.mkdir(parents=True, exist_ok=True)
    for source, name in ((work / "best", "model"), (work / "live" / "plots" / "metrics", "curves")):
        with atomic_path(out / name) as temporary:
            shutil.copytree(source, temporary)
    with atomic_path(out / "metrics.json") as temporary:
        temporary.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    print(f"Training ended, for {training.annealing.ends(state.perplexities)}.", file=sys.stderr)
    keep_cost(work / "cost.json", state.updates, out / "model" / "weights.safetensors", work / "costs")
    remove_all_but(work / "costs")


def start_workers(params: TrainParams, seed: int) -> None:
    """Become torchrun, which starts the processes of this machine and runs this command in each."""
    cores = len(os.sched_getaffinity(0))
    meeting = (
        ["--standalone"]
        if params.rendezvous is None
        else ["--rdzv-backend=c10d", f"--rdzv-endpoint={params.rendezvous}", f"--rdzv-id=train-{seed}"]
    )
    command = [
        *(sys.executable, "-m", "torch.distributed.run", f"--nnodes={params.nodes}"),
        *(f"--nproc-per-node={params.workers}", *meeting, "-m", "pipelines.stages", *sys.argv[1:]),
    ]
    threads = str(max(1, cores // params.workers))
    os.execve(sys.executable, command, {"OMP_NUM_THREADS": threads, **os.environ})
