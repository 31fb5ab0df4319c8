"""Check params.yaml before anything runs: `python -m pipelines.check`.

`make repro` and the flows do this first. With `--list`, show every key: its value, that of
experiments/base.yaml if it differs, and its meaning.
"""

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from convs2s.base.messages import report_errors
from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.package.start import check_models
from convs2s.text.languages import find_faults
from pipelines import shell
from pipelines.disk import print_disk
from pipelines.meanings import meanings

BASE = Path(__file__).parents[1] / "experiments" / "base.yaml"
PARAMS = Path("params.yaml")
SHARE = "To share these texts, as docs/own-data.md describes:"


def check_folders(params: Params, path: Path) -> None:
    """Check that local texts exist beside the file, and that models named there fit.

    Raises:
        FileNotFoundError: if a folder is missing.
        ValueError: as `check_models`.
    """
    folder = path.parent / params.download.folder
    for tracked in [folder.with_name(f"{folder.name}.dvc"), *folder.glob("*.dvc")]:
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


def find_suspicious(params: Params) -> Iterator[str]:
    """Yield a sentence for each language that is no language, or if both are the same."""
    languages = params.download.source_language, params.download.target_language
    yield from find_faults(languages)
    if languages[0] == languages[1] and params.evaluate.rouge is None:
        yield f"language {languages[0]}: expected another target, except for summaries (evaluate.rouge)"


def find_unshared(params: Params, path: Path) -> str:
    """Return a note on local texts that no other clone can get, in neither git nor DVC; or an empty text."""
    given = params.download.folder
    if not any(source.kind == "files" for source in params.download.train):
        return ""
    if not (path.parent / given).resolve().is_relative_to(path.parent.resolve()):
        name = f"data/own/{Path(given).name}"
        command = f"dvc import-url {shlex.quote(given)} {name}, and download.folder: {name}"
        return f"{given} is outside this clone. {SHARE} {command}"
    list_ignored = "git", "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--"
    with contextlib.suppress(shell.CommandFailed):  # no git
        found = {*map(Path, filter(None, shell.run(*list_ignored, given, cwd=path.parent).split("\0")))}
        tracked = {
            one for one in found for at in [one, *one.parents] if (path.parent / f"{at}.dvc").is_file()
        }
        names = sorted(str(one) for one in found - tracked)
        if names:
            return f"{', '.join(names)}: in neither git nor DVC. {SHARE} dvc add {shlex.join(names)}"
    return ""


def list_keys(params: Params, base: Params) -> Iterator[str]:
    """Yield two lines per key: its dotted name with its value, and its meaning."""
    defaults = base.model_dump(mode="json")
    for section, values in params.model_dump(mode="json").items():
        texts = meanings(type(getattr(params, section)))
        for key, value in values.items():
            shown, default = (json.dumps(one, ensure_ascii=False) for one in (value, defaults[section][key]))
            yield f"{section}.{key}: {shown}" + (f"  (base.yaml: {default})" if shown != default else "")
            yield f"    {texts[key]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Check params.yaml in the working directory; exit with status 2 if it is invalid."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.check", description="Check params.yaml.")
    parser.add_argument("--list", action="store_true", help="show every key, its value and its meaning")
    options = parser.parse_args(arguments)
    with report_errors("check", "Use a machine with more memory.", "Nothing was changed."):
        params = load_params(PARAMS)
        check_folders(params, PARAMS)
        if options.list:
            print(*list_keys(params, load_params(BASE)), sep="\n")
        else:
            print("params.yaml: OK")
            for warning in find_suspicious(params):
                print(f"warning: {warning}", file=sys.stderr)
            if note := find_unshared(params, PARAMS):
                print(f"note: {note}")
            print_disk(params, Path())


if __name__ == "__main__":
    main(sys.argv[1:])
