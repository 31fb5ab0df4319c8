"""Train a model from Python: start the workers, build or resume the training, save, export."""

import base64
import contextlib
import dataclasses
import json
import os
import socket
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from convs2s.base.files import atomic_path, write_json
from convs2s.base.messages import TRAINING_MEMORY, inflect, report_errors
from convs2s.base.parallel import cores
from convs2s.config.model import ModelParams
from convs2s.config.train import RunSection, TrainParams
from convs2s.model.precision import Wanted, choose_precision
from convs2s.model.storage import save_model
from convs2s.train.checkpoint import Checkpoint, load_mean
from convs2s.train.cost import sum_up
from convs2s.train.curves import write_curves
from convs2s.train.distributed import Workers, choose_device, join_workers
from convs2s.train.fingerprint import digest_of_library, training_fingerprint
from convs2s.train.follow import defer_signals, end_after, follow
from convs2s.train.launch import end_with_launcher, launch
from convs2s.train.loop import perplexity, train, validation_loss
from convs2s.train.place import Place
from convs2s.train.setup import build_training, keep_freed_memory
from convs2s.train.training import Training
from convs2s.train.work_folder import MARK, WorkFolder, hold


class Paths(NamedTuple):
    """The folders and the file of a training; see `train_model`."""

    encoded: Path
    vocabulary: Path
    candidates: Path
    work: Path
    out: Path
    cost: Path


NO_CODE: Mapping[str, str] = {}
BUSY = 1.5  # processes per core that are running or waiting


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
        work: folder for checkpoints, kept across interruptions (`convs2s.train.work_folder`). If another
            process is training here, this one waits for it. Once the outputs are safe, `remove_ended` deletes
            the checkpoints; until then, the same call exports the model again.
        out: folder for model/, curves/ and metrics.json, which are the same however fast they were made.
        cost: file for hardware, time and speed.
        code: digests of the code by name; a checkpoint of other code is kept, but not resumed from.

    Raises:
        ValueError: if the data does not fit the parameters, there are more workers than GPUs, or
            machines differ.
        FloatingPointError: if the training diverges.
        OSError: if the place for copies of checkpoints, `run.checkpoints`, cannot be used, or another
            training writes there.
        ChildProcessError: if a worker process fails for any reason; its own message is on stderr.
        KeyboardInterrupt, SystemExit: after Ctrl-C or another signal to end; see `defer_signals`.
    """
    paths = Paths(encoded, vocabulary, candidates, work, out, cost)
    if "RANK" in os.environ or (train.workers == 1 and run.launcher is None):
        work_as_one(model, train, run, seed, paths, code)
        return
    if run.launcher is None:
        choose_device(0, train.workers)  # reject too many workers before starting any
    mark = uuid.uuid4().hex
    with hold(work):  # wait here rather than in a worker, where the other workers' wait would time out
        (work / MARK).write_text(mark)
    sections = {"model": model.model_dump(), "train": train.model_dump(), "run": run.model_dump()}
    arguments = {**sections, "seed": seed, "code": dict(code), "mark": mark}
    arguments |= {name: str(path) for name, path in paths._asdict().items()}
    word = base64.urlsafe_b64encode(json.dumps(arguments).encode()).decode()  # passes through any shell
    launch("convs2s.train.run", [word], train, run)


def work_as_one(
    model_params: ModelParams,
    params: TrainParams,
    run: RunSection,
    seed: int,
    paths: Paths,
    code: Mapping[str, str],
    may_write: bool = True,
) -> None:
    """Train as the only worker or as one of several; see `train_model` and `join_workers`."""
    encoded, vocabulary, candidates, work, out, cost = paths
    table = candidates / "candidates.npz"
    with join_workers(params.workers, may_write) as workers, contextlib.ExitStack() as stack:
        if workers.writes:  # it holds the lock, so that it is held as long as anything may be written
            stack.enter_context(hold(work))
        keep_freed_memory()
        warn_of_load(workers)
        training = build_training(model_params, params, seed, encoded, vocabulary, table, workers)
        prints = training_fingerprint(model_params, params, seed, encoded, table, workers.count, code)
        folder = WorkFolder(work, prints)
        place = Place(run.checkpoints, folder.own) if workers.writes and run.checkpoints else None
        begin(training, folder, place, params.precision)
        reports = train(training)
        if not workers.writes:
            with defer_signals(training.signals):
                for report in reports:
                    end_after(report, training)
            return
        follow(training, reports, run, folder, place)
        best = folder.best(training.state, params.average)
        export(training, model_params, best, out)
        write_json(cost, sum_up(training.state.sessions))
        reason = training.annealing.ends(training.state.perplexities)
        mean = f" The model is the mean of {inflect(len(best), 'epoch')}." if params.average > 1 else ""
        print(f"Training ended: {reason}.{mean}", file=sys.stderr)
        folder.mark_ended(place.address if place else "")


def warn_of_load(workers: Workers) -> None:
    """Say what helps on a busy machine, where threads mostly wait for each other."""
    load = os.getloadavg()[0]
    chosen = "OMP_NUM_THREADS" in os.environ or workers.device.type != "cpu" or not workers.writes
    if not chosen and load > BUSY * cores():
        print(
            f"note: the machine is busy (load {load:.1f} on {inflect(cores(), 'core')}): training may be "
            "several times faster with OMP_NUM_THREADS=1 in the environment.",
            file=sys.stderr,
        )


def begin(training: Training, folder: WorkFolder, place: Place | None, wanted: Wanted) -> None:
    """Resume from a checkpoint if there is one, here or at the place; other workers get it from the writer.

    Args:
        wanted: precision of products in params.yaml.

    Raises:
        ValueError: if this worker has other data, code or version of PyTorch than the writer.
    """
    workers, optimizer = training.workers, training.optimizer
    if workers.writes:
        if place and (copied := place.fetch(folder.list_saved())):
            print(copied, file=sys.stderr)
        print(folder.resume(training), file=sys.stderr)
        print(describe_precision(training, wanted), file=sys.stderr)
    if workers.count == 1:
        return
    own = folder.prints | {"PyTorch": str(torch.__version__), "code of convs2s": digest_of_library()}
    training.state, expected = workers.from_writer((training.state, own))
    if differing := sorted(dict(own.items() ^ expected.items())):
        raise ValueError(
            f"expected what the node has in whose folder the training was started, found other versions on "
            f"{socket.gethostname()} in {Path.cwd()}: {', '.join(differing)}."
        )
    optimizer.updates = training.state.updates
    if optimizer.updates:
        workers.copy_from_writer(p.data for p in training.model.parameters())
        workers.copy_from_writer(
            buffer.setdefault(p, torch.zeros_like(p))
            for buffer in optimizer.buffers.values()
            for p in optimizer.parameters
        )


def describe_precision(training: Training, wanted: Wanted) -> str:
    """Return a line on the precision of products; a resumed training keeps that of its checkpoint."""
    chosen, device = training.state.precision, training.workers.device
    if chosen == (choice := choose_precision(wanted, device)).precision:
        return str(choice)
    kept = f"products stay in {chosen}, as the training began on another machine"
    return f"{kept}; {slow}" if (slow := choose_precision(chosen, device)).is_slow else f"{kept}."


def export(training: Training, params: ModelParams, best: list[Checkpoint], out: Path) -> None:
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
    if training.average > 1:
        # Only the writer has the mean, so it takes each worker's share; batches decide what is selected.
        shares = [Workers(rank, 1, training.workers.device) for rank in range(training.workers.count)]
        nats = sum(validation_loss(dataclasses.replace(training, workers=share)) for share in shares)
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


def main() -> None:
    """Train as one of several workers; the command line holds the arguments of `train_model`."""
    end_with_launcher()
    arguments = json.loads(base64.urlsafe_b64decode(sys.argv[1]))
    model = ModelParams.model_validate(arguments["model"])
    params = TrainParams.model_validate(arguments["train"])
    run = RunSection.model_validate(arguments["run"])
    name = f"train, worker {os.environ['RANK']} on {socket.gethostname()}"
    with report_errors(name, TRAINING_MEMORY, "The training resumes from its last checkpoint."):
        paths = Paths(*(Path(arguments[name]) for name in Paths._fields))
        mark = paths.work / MARK
        may_write = mark.is_file() and mark.read_text() == arguments["mark"]
        work_as_one(model, params, run, arguments["seed"], paths, arguments["code"], may_write)
    # Gloo's threads outlive destroy_process_group, because DDP's reducer keeps the group alive. A thread that
    # waits for the GIL while Python shuts down aborts the process. Everything is written: skip the shutdown.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
