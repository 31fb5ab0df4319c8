"""What a page names, such as a message, a file, a key or a variable, exists where it says."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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
    "join() argument must be str",
}  # fmt: skip
"""Signs, programs, and what Python, numba and DVC have."""
PLACEHOLDERS = {
    ".NAME.PROCESS.part": ".*.part",
    "data/trained/SEED": "data/trained",
    "average: N": "average:",
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


def exists(name: str) -> bool:
    """Return whether there is what a page names in code style; commands are for tests.docs.commands."""
    name = PLACEHOLDERS.get(name, name)
    if name in OF_OTHERS:
        return True
    if name in OF_LIBRARIES:
        spec = importlib.util.find_spec(OF_LIBRARIES[name])
        last = re.split(r"[./](?=\w+$)", name)[-1]
        return spec is not None and last in Path(str(spec.origin)).read_text(encoding="utf-8")
    if name.startswith("--"):
        return name in options()
    is_dotted = re.fullmatch(r"[a-z]+\.[a-z_]+", name) and not name.endswith((".yaml", ".json", ".lock"))
    if is_dotted and name.partition(".")[0] in params():
        check_param(name)  # raises
        return True
    if name.startswith("convs2s."):
        return hasattr(convs2s, name.partition(".")[2])
    value = name.partition("=")[0]
    return (ROOT / name).exists() or value in settings() or any(value in text for text in texts())
