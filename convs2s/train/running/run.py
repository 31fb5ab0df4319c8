"""Train a model from Python: start the workers, build or resume the training, save, export."""

import base64
import contextlib
import os
import socket
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from convs2s.base.files import atomic_path, write_json
from convs2s.base.messages import TRAINING_MEMORY, inflect, report_errors
from convs2s.base.parallel import end_with_parent
from convs2s.config.model import ModelParams
from convs2s.config.train import RunSection, TrainParams
from convs2s.model.precision import choose_precision
from convs2s.model.storage import save_model
from convs2s.train.distributed import choose_device, join_workers
from convs2s.train.loop import perplexity, train, validation_loss
from convs2s.train.running.checkpoint import TrainingCheckpoint, load_mean, weights_of
from convs2s.train.running.checkpoint_copies import CheckpointCopies
from convs2s.train.running.curves import write_curves
from convs2s.train.running.follow import defer_signals, end_after, train_to_end
from convs2s.train.running.job import Job, digest_of_library, list_changed, training_fingerprint
from convs2s.train.running.launch import LAUNCHER, launch
from convs2s.train.running.work_folder import START_MARK, WorkFolder, hold
from convs2s.train.setup import build_training, keep_freed_memory
from convs2s.train.training import Session, Training

NO_CODE: Mapping[str, str] = {}
JOB = TypeAdapter(Job)


def train_model(
    model: ModelParams,
    train: TrainParams,
    run: RunSection,
    seed: int,
    encoded: Path,
    vocabulary: Path,
    candidates: Path,
    work: Path,
    out: Path,
    cost: Path,
    *,
    code: Mapping[str, str] = NO_CODE,
) -> None:
    """Train a model; if `work` has a checkpoint of this training, resume from it.

    With several workers or a launcher, torchrun starts them on all machines, which must have the inputs, and
    this process waits, unless torchrun started it as a worker itself.

    Args:
        encoded: folder with train/ and valid/, as written by the stage encode.
        vocabulary: folder with source.tsv and target.tsv.
        candidates: folder with candidates.npz, read only with vocabulary selection.
        work: folder for checkpoints, kept across interruptions (`convs2s.train.running.work_folder`). If
            another process is training here, this one waits for it. Once the outputs are safe, `remove_ended`
            deletes the checkpoints; until then, the same call exports the model again.
        out: folder for model/, curves/ and metrics.json, which are the same however fast they were made.
        cost: file for hardware, time and speed.
        code: digests of the code by name; a checkpoint of other code is kept, but not resumed from.

    Raises:
        ValueError: if the data does not fit the parameters, there are more workers than GPUs, or
            machines differ.
        FloatingPointError: if the training diverges.
        OSError: if the place for copies of checkpoints, `run.checkpoints`, cannot be used.
        ChildProcessError: if a worker process fails for any reason; its own message is on stderr.
        KeyboardInterrupt, SystemExit: after Ctrl-C or another signal to end; see `defer_signals`.
    """
    mark = uuid.uuid4().hex
    job = Job(
        model=model,
        train=train,
        run=run,
        seed=seed,
        encoded=encoded,
        vocabulary=vocabulary,
        candidates=candidates,
        work=work,
        out=out,
        cost=cost,
        code=code,
        mark=mark,
    )
    if "RANK" in os.environ or (job.processes == 1 and run.launcher is None):
        work_as_one(job)
        return
    if run.launcher is None:
        choose_device(0, job.processes)  # reject too many workers before starting any
    with hold(work):  # wait here rather than in a worker, where the other workers' wait would time out
        (work / START_MARK).write_text(mark)
    word = base64.urlsafe_b64encode(JOB.dump_json(job)).decode()  # passes through any shell
    launch("convs2s.train.running.run", [word], train, run)


def work_as_one(job: Job, may_write: bool = True) -> None:
    """Train as the only worker or as one of several; see `train_model` and `join_workers`."""
    with join_workers(job.processes, may_write) as workers, contextlib.ExitStack() as stack:
        if workers.writes:  # it holds the lock, so that it is held as long as anything may be written
            stack.enter_context(hold(job.work))
        keep_freed_memory()
        training = build_training(
            job.model, job.train, job.seed, job.encoded, job.vocabulary, job.table, workers
        )
        shares = training.batching.workers
        if workers.count > shares:
            raise ValueError(
                f"expected at most {inflect(shares, 'process', 'processes')}, one for each worker of "
                f"train.workers and train.nodes, found {workers.count}."
            )
        folder = WorkFolder(job.work, training_fingerprint(job, shares))
        copies = None
        if workers.writes and job.run.checkpoints:
            copies = CheckpointCopies(job.run.checkpoints, folder.own)
        begin(training, folder, copies)
        reports = train(training)
        if not workers.writes:
            with defer_signals(training.signals):
                for report in reports:
                    end_after(report, training)
            return
        train_to_end(training, reports, job.run, folder, copies)
        best = folder.best(training.state, job.train.average)
        export(training, job.model, best, job.out)
        write_json(job.cost, sum_up(training.state.sessions))
        reason = training.annealing.ends(training.state.perplexities)
        mean = f" The model is the mean of {inflect(len(best), 'epoch')}." if job.train.average > 1 else ""
        print(f"Training ended: {reason}.{mean}", file=sys.stderr)
        folder.mark_ended(copies.address if copies else "")


def begin(training: Training, folder: WorkFolder, copies: CheckpointCopies | None) -> None:
    """Resume from the newest checkpoint, here or a copy; other workers get it from the writer."""
    workers = training.workers
    optimizer = training.optimizer
    if workers.writes:
        if copies is not None:
            message = copies.fetch(folder.list_saved())
            if message:
                print(message, file=sys.stderr)
        print(folder.resume(training), file=sys.stderr)
        choice = choose_precision(training.params.precision, workers.device)
        precision = training.state.precision
        if choice.precision == precision:
            print(choice, file=sys.stderr)
        else:
            print(f"products stay in {precision}, as the training began on another machine.", file=sys.stderr)
        if change := describe_change(training):
            print(change, file=sys.stderr)
    if workers.count == 1:
        return
    versions = folder.prints | {"PyTorch": str(torch.__version__), "code of convs2s": digest_of_library()}
    training.state, expected = workers.from_writer((training.state, versions))
    differing = list_changed(expected, versions)
    if differing:
        raise ValueError(
            "expected the versions of the node where the training was started, found other versions on "
            f"{socket.gethostname()} in {Path.cwd()}: {', '.join(differing)}."
        )
    if training.state.updates:
        workers.copy_from_writer(tensor.data for tensor in weights_of(training.model).values())
        for buffer in optimizer.buffers.values():
            workers.copy_from_writer(buffer.values())


def describe_change(training: Training) -> str | None:
    """Return what it means if a training goes on with another number of processes than it had; or None."""
    sessions, now = training.state.sessions, training.workers.count
    before = sessions[-1].get("processes", training.batching.workers) if sessions else now
    if before == now:
        return None
    return (
        f"Training had {inflect(before, 'process', 'processes')} and goes on with {now}: updates have the "
        "same sentences and dropout masks, and differ by the rounding of sums."
    )


def export(training: Training, params: ModelParams, best: list[TrainingCheckpoint], out: Path) -> None:
    """Write model/, the mean of the best epochs' checkpoints, curves/ and metrics.json to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    load_mean(training.model, best, out)
    with atomic_path(out / "model") as temporary:
        save_model(temporary, training.model, params)
    write_curves(out / "curves", training.state.curve, training.state.epochs)
    write_json(out / "metrics.json", metrics(training))


def metrics(training: Training) -> dict[str, Any]:
    """Return the exported model's losses, size, precision of products, and numbers of epochs and updates."""
    state = training.state
    best = min(state.epochs, key=lambda record: record["validation_perplexity"])
    if training.params.average > 1:
        # Only the writer has the mean, so it takes each share; batches decide what is selected.
        nats = sum(validation_loss(training, share) for share in range(training.batching.workers))
        best = best | {"validation_loss": nats, "validation_perplexity": perplexity(nats)}
    figures = {
        "validation_perplexity": best["validation_perplexity"],
        "validation_loss": best["validation_loss"],
        "training_loss": best["training_loss"],
        "best_epoch": best["epoch"],
        "epochs": len(state.epochs),
        "updates": state.updates,
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "precision": state.precision,
    }
    if "selected_entries" in best:
        figures["selected_entries"] = best["selected_entries"]
    return figures


def sum_up(sessions: Sequence[Session]) -> dict[str, str | float]:
    """Return the cost of all sessions together, by title; hours are multiplied by the number of devices."""
    hours = defaultdict[str, float](float)
    for session in sessions:
        hours[f"{session['unit']}-hours"] += session["seconds"] * session["count"] / 3600
    tokens = sum(session["target_tokens"] for session in sessions)
    seconds = sum(session["training_seconds"] for session in sessions)
    return {
        "hardware": join_different(f"{session['count']} x {session['device']}" for session in sessions),
        **{unit: round(value, 4) for unit, value in hours.items()},
        **({"target tokens/s": round(tokens / seconds)} if seconds else {}),
        "products in": join_different(session["precision"] for session in sessions),
        "PyTorch": join_different(session["torch"] for session in sessions),
    }


def join_different(texts: Iterable[str]) -> str:
    """Return the different texts, in the order in which they first occur."""
    return ", ".join(dict.fromkeys(texts))


def main() -> None:
    """Train as one of several workers; the command line holds the job."""
    # torchrun gives each worker its own session, so a signal to its process group does not reach them.
    end_with_parent(int(os.environ[LAUNCHER]))
    job = JOB.validate_json(base64.urlsafe_b64decode(sys.argv[1]))
    name = f"train, worker {os.environ['RANK']} on {socket.gethostname()}"
    with report_errors(name, TRAINING_MEMORY, "The training resumes from its last checkpoint."):
        mark = job.work / START_MARK
        work_as_one(job, may_write=mark.is_file() and mark.read_text() == job.mark)
    # Gloo's threads outlive destroy_process_group, because DDP's reducer keeps the group alive. A thread that
    # waits for the GIL while Python shuts down aborts the process. Everything is written: skip the shutdown.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
