"""Check params.yaml before anything runs: `python -m pipelines.check`.

`make repro` and the flows do this first. With `--list`, show every key: its value, that of
experiments/base.yaml if it differs, and its meaning.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.messages import report_errors
from pipelines.meanings import meanings

BASE = Path(__file__).parents[1] / "experiments" / "base.yaml"
PARAMS = Path("params.yaml")


def check_folder(params: Params, path: Path) -> None:
    """Check that the folder of local texts exists beside the file; raise a FileNotFoundError if not."""
    folder = path.parent / params.download.folder
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{path}: download.folder: expected the folder with your texts, or data/own without any, found "
            f"{params.download.folder}, which is not a folder."
        )


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
        check_folder(params, PARAMS)
        if options.list:
            print(*list_keys(params, load_params(BASE)), sep="\n")
        else:
            print("params.yaml: OK")


if __name__ == "__main__":
    main(sys.argv[1:])
