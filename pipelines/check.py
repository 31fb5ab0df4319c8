"""Check params.yaml before anything runs: `python -m pipelines.check`.

`make repro` and the flows do this first; `make repro` with `--track`, which has DVC track texts and models
that git ignores. With `--list`, show every key: its value, that of experiments/base.yaml if it differs, and
its meaning.
"""

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from convs2s.base.messages import report_errors
from convs2s.config.load import flatten_values, load_params
from convs2s.config.params import Params
from convs2s.package.start import check_models
from convs2s.text.languages import find_faults
from pipelines import shell

BASE = Path(__file__).parents[1] / "experiments" / "base.yaml"
PARAMS = Path("params.yaml")


def check_folders(params: Params, path: Path) -> None:
    """Check that local texts exist beside the file, and that models named there fit.

    Raises a FileNotFoundError, or a ValueError as `check_models`.
    """
    folder = path.parent / params.download.folder
    for tracked in [Path(f"{parent}.dvc") for parent in (folder, *folder.parents)]:
        if tracked.is_file() and not (texts := tracked.with_suffix("")).exists():
            raise FileNotFoundError(
                f"{path}: download.folder: expected {texts}, which DVC tracks, found only {tracked}. Fetch "
                f"the texts: dvc pull {tracked}"
            )
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{path}: download.folder: expected the folder with your texts, or data/own without any, found "
            f"{params.download.folder}, which is not a folder."
        )
    check_models(params, path.parent)


def track_inputs(params: Params, root: Path) -> Iterator[str]:
    """Have DVC track the texts and models that git ignores; yield what was done, or what the user can do.

    `dvc push`, and DVC's experiments in copies (`dvc exp run --temp` and `--queue`), would leave them out.
    The .dvc file is directly in data/, because DVC looks for none in folders that git ignores.
    """
    train, augment = params.train, params.augment
    inputs = map(Path, (params.download.folder, train.start_from, augment.models, augment.text))
    for path in sorted({Path(*path.parts[:2]) if path.parts[:1] == ("data",) else path for path in inputs}):
        if not (root / path).resolve().is_relative_to(root.resolve()):
            own = f"data/{path.name}"
            yield (
                f"{path} is outside this clone, so that others cannot get it. To import it: dvc import-url "
                f"{shlex.quote(str(path))} {own}, and name {own} in params.yaml"
            )
        elif not (root / f"{path}.dvc").is_file():
            with contextlib.suppress(shell.CommandFailed):  # no git, or not ignored
                shell.run("git", "check-ignore", "--quiet", str(path), cwd=root)
                shell.run(sys.executable, "-m", "dvc", "add", "--quiet", str(path), cwd=root)
                shell.run("git", "add", f"{path}.dvc", cwd=root)
                yield f"DVC tracks {path} from now on: commit {path}.dvc with params.yaml, and dvc push"


def list_keys(params: Params, base: Params) -> Iterator[str]:
    """Yield two lines per key: its dotted name with its value, and its meaning."""
    defaults = flatten_values(base.model_dump(mode="json"))
    for name, value in flatten_values(params.model_dump(mode="json")).items():
        section, _, key = name.rpartition(".")
        meaning = type(getattr(params, section) if section else params).model_fields[key].description or ""
        shown, default = (json.dumps(setting, ensure_ascii=False) for setting in (value, defaults[name]))
        yield f"{name}: {shown}" + (f"  (base.yaml: {default})" if shown != default else "")
        yield f"    {' '.join(meaning.split())}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Check params.yaml in the working directory; exit with status 2 if it is invalid."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.check", description="Check params.yaml.")
    parser.add_argument("--list", action="store_true", help="show every key, its value and its meaning")
    parser.add_argument("--track", action="store_true", help="also have DVC track texts that git ignores")
    options = parser.parse_args(arguments)
    with report_errors("check", "Use a machine with more memory.", "Nothing was changed."):
        params = load_params(PARAMS)
        check_folders(params, PARAMS)
        if options.list:
            print(*list_keys(params, load_params(BASE)), sep="\n")
        else:
            print("params.yaml: OK")
            for fault in find_faults(params.languages):
                print(f"warning: {fault}", file=sys.stderr)
            for note in track_inputs(params, Path()) if options.track else ():
                print(f"note: {note}")


if __name__ == "__main__":
    main(sys.argv[1:])
