"""What a page names, such as a message, a file, a key or a variable, exists where it says."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

import convs2s
from tests.docs.commands import check_param, options, params
from tests.docs.pages import ROOT

OF_LIBRARIES = {
    "DVC_SITE_CACHE_DIR": "dvc.env",
    "NUMBA_CACHE_DIR": "numba.core.config",
    "core.site_cache_dir": "dvc.config_schema",
    "/var/tmp/dvc": "dvc.dirs",
}
"""Names that are not ours, and the module that has their last part."""
OF_OTHERS = {
    "{", "}", "[1]", "[]", "dmesg", "dvc", "http", "https", ".gz",
    "__pycache__", "~/.cache/numba", ".dvc/config", ".dvc/config.local",
    "join() argument must be str", "train.tags.*", "train.layer_dropout",
}  # fmt: skip
"""Signs, programs, what Python, numba, DVC and WIT3 have, and the example of a key that came later."""
FOLDERS = ("convs2s/", "pipelines/", "experiments/", "docs/", "tests/", "benchmarks/", "deploy/", "data/")
SUFFIXES = (".yaml", ".json", ".lock")
PLACEHOLDERS = {
    ".NAME.PROCESS.part": ".*.part",
    "average: N": "average:",
    "data/checkpoints/SEED/tensorboard/ID": "tensorboard",
    "data/report-NAME.html": "report-....html",
    "data/sweeps": "sweeps",
    "data/sweeps/TABLE.csv": "sweeps",
    "data/sweeps/table5.csv": "sweeps",
}
"""Names with a part that varies, and what the code has of them."""


def files() -> Iterator[Path]:
    """Yield the files of code and settings."""
    for folder in ("convs2s", "pipelines", "experiments", "deploy"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".yaml"})
    yield from (ROOT / name for name in ("Makefile", "dvc.yaml", "params.yaml", ".dvcignore", ".gitignore"))


@cache
def settings() -> str:
    """Return the text of all files that are not code."""
    return "\n".join(path.read_text(encoding="utf-8") for path in files() if path.suffix != ".py")


@cache
def texts() -> list[str]:
    """Return the texts in the code, with `...` in place of each value; without docstrings."""
    found = []
    for path in files():
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if path.suffix == ".py" else ()
        docstrings = set[ast.AST]()
        for node in nodes:
            if isinstance(node, ast.Expr):  # which comes before the text that it consists of
                docstrings.add(node.value)
            elif node in docstrings:
                continue
            elif isinstance(node, ast.JoinedStr):
                parts = [str(one.value) if isinstance(one, ast.Constant) else "..." for one in node.values]
                found.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def is_said(message: str) -> bool:
    """Return whether the code has a message, in which `...` stands for anything."""
    pattern = re.compile(".*".join(map(re.escape, message.split("..."))), re.DOTALL)
    return any(map(pattern.search, texts()))


@cache
def outputs() -> list[Path]:
    """Return the outputs that dvc.yaml declares, with * for a seed or a split."""
    stages = YAML(typ="safe", pure=True).load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    declared = [
        output if isinstance(output, str) else next(iter(output))  # a plot with its settings
        for stage in stages.values()
        for kind in ("outs", "metrics", "plots")
        for output in stage.get(kind, ())
    ]
    return [Path(re.sub(r"\$\{.*?\}", "*", path)) for path in declared]


def is_output(name: str) -> bool:
    """Return whether a path, such as data/trained/1/curves, is an output, or leads to one or into one."""
    path = Path(name)
    for output in outputs():
        depth = min(len(path.parts), len(output.parts))
        if Path(*path.parts[:depth]).match(str(Path(*output.parts[:depth]))):
            return True
    return False


def is_ours(name: str) -> bool:
    """Return whether a name can only be one of this project: of a value or file of it, or of its API."""
    section, _, key = name.partition(".")
    return name.startswith(FOLDERS) or section == "convs2s" or (section in params() and key[:1].isalpha())


def exists(name: str) -> bool:
    """Return whether there is what a page names in code style; commands are for tests.docs.commands."""
    name = PLACEHOLDERS.get(name, name)
    if name in OF_OTHERS or is_output(name):
        return True
    if name in OF_LIBRARIES:
        spec = importlib.util.find_spec(OF_LIBRARIES[name])
        last = re.split(r"[./](?=\w+$)", name)[-1]
        return spec is not None and last in Path(str(spec.origin)).read_text(encoding="utf-8")
    if name.startswith("--"):
        return name in options()
    value = re.split("[:=(]", name)[0]  # of an assignment, or of a call
    is_dotted = re.fullmatch(r"[a-z]+(\.[a-z_0-9]+)+", value) and not value.endswith(SUFFIXES)
    if is_dotted and value.partition(".")[0] in params():
        check_param(value)  # raises
        return True
    if name.startswith("convs2s."):
        return hasattr(convs2s, value.partition(".")[2])
    is_file = any(ROOT.glob(name.replace("NAME", "*"))) if "NAME" in name else (ROOT / name).exists()
    return is_file or value in settings() or any(value in text for text in texts())
