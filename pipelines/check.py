"""Check params.yaml before anything runs: `python -m pipelines.check`.

`make repro` and the flows do this first. With `--list`, show every key: its value, that of
experiments/base.yaml if it differs, and its meaning.
"""

from pipelines import packages  # noqa: F401  # before what may be missing

# isort: split

import argparse
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from convs2s.base.messages import inflect, redact, report_errors, visible
from convs2s.base.parallel import cores
from convs2s.config.load import flatten_values, load_params
from convs2s.config.params import Params
from convs2s.config.train import count_processes
from convs2s.text.languages import find_faults
from pipelines import shell
from pipelines.later_keys import check_record
from pipelines.own_texts import make_own_folder
from pipelines.preset import EXPERIMENTS
from pipelines.stages._declared import PARAMS
from pipelines.stages._models import check_models

CONFLICT = re.compile(rb"^(<<<<<<<|>>>>>>>) ", re.MULTILINE)
"""A line with which git marks a conflict of a merge."""
FEW_TOKENS, MANY_TOKENS = 100, 1_000_000
"""A value of train.max_tokens below or above is probably a mistake."""
ARCHIVE = (
    "Clone this project with git; or in an unpacked archive: "
    "git init && git add --all && git commit --message 'As downloaded'"
)


def check_merge(root: Path) -> None:
    """Check that a merge has left no conflict in the files that DVC reads; raise a ValueError."""
    for name in ("params.yaml", "dvc.yaml", "dvc.lock"):
        path = root / name
        if path.is_file() and CONFLICT.search(path.read_bytes()):
            advice = "Edit the lines between <<<<<<< and >>>>>>>, then: git add " + name
            if name == "dvc.lock":  # DVC compares what it records with the files, and runs what differs
                advice = (
                    "Take the file of either side, and let DVC run what has changed: "
                    "git checkout --ours dvc.lock (or --theirs), git add dvc.lock, make repro"
                )
            raise ValueError(f"{path}: expected no conflicts, found those of a merge. {advice}")


def check_git(root: Path) -> None:
    """Check that git can read a repository here, with a commit; raise a ValueError."""
    try:
        shell.run("git", "rev-parse", "--verify", "HEAD", cwd=root)
    except shell.CommandFailed as error:
        is_advised = "safe.directory" in str(error) or shutil.which("git") is None
        advice = "" if is_advised else f". {ARCHIVE}"
        raise ValueError(f"expected a git repository with a commit: {error}{advice}") from error


def check_scm(root: Path) -> None:
    """Check that there is a git repository, unless DVC is set to do without; raise a ValueError."""
    root = root.resolve()
    in_repository = any((folder / ".git").exists() for folder in (root, *root.parents))
    if (root / ".dvc").is_dir() and not in_repository:
        from dvc.config import Config  # noqa: PLC0415  # takes half a second

        if not Config(str(root / ".dvc")).get("core", {}).get("no_scm"):
            raise ValueError(f"{root} is not a git repository, which DVC expects. {ARCHIVE}")


def check_folders(params: Params, path: Path) -> None:
    """Check that local texts exist beside the file, and that models named there fit."""
    if not (path.parent / params.download.folder).is_dir():
        raise FileNotFoundError(
            f"{path}: download.folder: expected the folder with your texts, found "
            f"{params.download.folder}, which is not a folder. If it has a .dvc file, fetch it: dvc pull"
        )
    check_models(params, path.parent)


def describe_reach(params: Params) -> Iterator[str]:
    """Yield a line for each value by which a training reaches beyond its folder, for people to judge."""
    if params.run.launcher is not None:
        yield f"run.launcher: training runs this command as you: {visible(params.run.launcher)}"
    if params.run.checkpoints is not None:
        yield f"run.checkpoints: training copies its weights there: {visible(redact(params.run.checkpoints))}"


def list_doubts(params: Params) -> Iterator[str]:
    """Yield a sentence for each value that is allowed but probably a mistake, here or with others."""
    yield from find_faults(params.languages)
    source, target = params.languages
    if source == target and params.evaluate.rouge is None:
        yield (
            f"languages: source and target are both {source}; expected two languages, unless the model "
            "shortens or corrects texts"
        )
    train = params.train
    if train.max_tokens < FEW_TOKENS:
        yield (
            f"train.max_tokens: most sentences have more than {train.max_tokens} tokens, so each is "
            "processed on its own, which is slow; expected some thousands"
        )
    if train.max_tokens > MANY_TOKENS and train.batch_by == "tokens":
        yield (
            f"train.max_tokens: no memory holds {train.max_tokens:,} tokens at once, so that only "
            f"train.batch_sentences, {train.batch_sentences:,}, limits a batch; expected some thousands"
        )
    processes = count_processes(train, params.run)
    if processes > cores() and params.run.launcher is None:
        yield (
            f"train.workers: {processes} processes share {inflect(cores(), 'core')} here, which is "
            f"slower than fewer; expected one per GPU or, without GPUs, 1 to {cores()}"
        )
    if train.min_learning_rate > train.learning_rate:
        yield (
            f"train.min_learning_rate: {train.min_learning_rate:g} is above train.learning_rate, "
            f"{train.learning_rate:g}, so that training ends after one epoch"
        )


def list_keys(params: Params, base: Params) -> Iterator[str]:
    """Yield two lines per key: its dotted name with its value, and its meaning."""
    defaults = flatten_values(base.model_dump(mode="json"))
    for name, value in flatten_values(params.model_dump(mode="json")).items():
        section, _, key = name.rpartition(".")
        schema = type(getattr(params, section) if section else params)
        meaning = schema.model_fields[key].description or ""
        text = json.dumps(value, ensure_ascii=False)
        default = json.dumps(defaults[name], ensure_ascii=False)
        if text == default:
            yield f"{name}: {text}"
        else:
            yield f"{name}: {text}  (base.yaml: {default})"
        yield f"    {' '.join(meaning.split())}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Check params.yaml in the working directory; exit with status 2 if it is invalid."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.check", description="Check params.yaml.")
    parser.add_argument("--list", action="store_true", help="show every key, its value and its meaning")
    options = parser.parse_args(arguments)
    with report_errors("check", "Use a machine with more memory.", "Nothing was changed."):
        check_scm(Path())
        check_merge(Path())
        params = load_params(PARAMS)
        make_own_folder(Path(), params.download.folder)
        check_folders(params, PARAMS)
        if options.list:
            print(*list_keys(params, load_params(EXPERIMENTS / "base.yaml")), sep="\n")
        else:
            check_record(Path())
            print("params.yaml: OK", *describe_reach(params), sep="\n")
            for doubt in list_doubts(params):
                print(f"warning: {doubt}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
