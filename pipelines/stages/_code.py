"""What determines a stage's result besides its files: values, the project's code, and libraries for text.

Every stage depends on these, so an edit reruns the stages that can execute the edited code, and no others.
Imports determine what a stage can execute, so there is no list to maintain:

- all imports are followed from the stage's module and the runner, including those inside functions;
- a package's `__init__` runs when one of its modules is imported: its top-level statements count, but its
  functions count only where the package itself is imported (`from convs2s import load`).

Left out is what cannot change a result: comments, docstrings, layout, the texts of errors and warnings, and
two folders. `convs2s.config` turns params.yaml into values, which are recorded themselves. `convs2s.watch`
only shows and counts; its functions return nothing.

PyTorch and NumPy are not named: each kind of machine has its own build of PyTorch, and results could not be
shared between machines. The record of a training's cost has PyTorch's version.
"""

import ast
import builtins
import functools
import hashlib
import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from convs2s.config.params import Params
from convs2s.model.description import DESCRIPTION, digest_of_file

RUNNER = "pipelines.stages.__main__"
LEFT_OUT = ("convs2s.config.", "convs2s.watch.")
TEXT_LIBRARIES = {"nltk", "rouge_score", "sacrebleu", "sacremoses", "sentencepiece"}
"""A new version of one of these can change words, pieces or scores."""


@dataclass(frozen=True)
class Module:
    """A Python file of the project."""

    path: Path

    @cached_property
    def content(self) -> bytes:
        """The file's bytes, read once: all properties are of the same version."""
        return self.path.read_bytes()

    @cached_property
    def checksum(self) -> str:
        """MD5 of the file."""
        return hashlib.md5(self.content, usedforsecurity=False).hexdigest()

    @cached_property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return ast.parse(self.content, str(self.path))

    @cached_property
    def imports(self) -> set[str]:
        """Names that the module imports, including inside functions: modules, or attributes of modules."""
        return find_imports(self.tree, functions=True)

    @cached_property
    def own_imports(self) -> set[str]:
        """Names that the module imports when it is itself imported."""
        return find_imports(self.tree, functions=False)

    @cached_property
    def is_stage(self) -> bool:
        """Whether the module has a function `run`."""
        return any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in self.tree.body)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the code that can make a result."""
        return hashlib.sha256(repr(essence(self.tree)).encode()).hexdigest()


def find_imports(tree: ast.Module, functions: bool) -> set[str]:
    """Return the names that code imports, with or without the imports inside functions."""
    found: set[str] = set()
    for node in statements(tree, functions):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def statements(tree: ast.AST, functions: bool) -> Iterator[ast.stmt]:
    """Yield the statements below a node of a syntax tree, with or without functions and their bodies."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.expr) or (
            not functions and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        ):
            continue
        if isinstance(child, ast.stmt):
            yield child
        yield from statements(child, functions)


def essence(node: object) -> object:
    """Return code as nested tuples, without docstrings and the texts of errors and warnings.

    Empty fields are left out because versions of Python differ in them.
    """
    if isinstance(node, list):
        return tuple(essence(one) for one in node if not is_docstring(one))
    if not isinstance(node, ast.AST):
        return node
    fields = {name: value for name, value in ast.iter_fields(node) if name != "ctx"}
    if isinstance(node, ast.Call) and is_message(node):
        fields["args"] = [argument for argument in node.args if not is_text(argument)]
    kept = {name: essence(value) for name, value in fields.items()}
    return type(node).__name__, *((name, value) for name, value in kept.items() if value not in (None, ()))


def is_docstring(node: object) -> bool:
    """Return whether a node is a string as a statement, which has no effect."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def is_message(call: ast.Call) -> bool:
    """Return whether a call makes one of Python's own errors, or warns.

    No code decides by the text of an error (a test holds it), so the text cannot change a result.
    """
    name = ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""
    error = getattr(builtins, name, None)
    return name == "warnings.warn" or (isinstance(error, type) and issubclass(error, BaseException))


def is_text(node: ast.expr) -> bool:
    """Return whether an expression is a string as written in code, also with values inserted or added."""
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return True
        case ast.BinOp(op=ast.Add()):
            return is_text(node.left) or is_text(node.right)
    return False


def read_project(packages: Iterable[Path], root: Path = Path()) -> dict[str, Module]:
    """Return the modules of packages by dotted name; a package's name stands for its `__init__`.

    Args:
        packages: folders, relative to `root`.
        root: the folder that Python imports from.
    """
    found = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = Module(path)
    return found


def reach(names: Iterable[str], project: Mapping[str, Module]) -> set[str]:
    """Return these modules and all others of the project that they can execute and that can make results."""
    waiting = [(name, True) for name in names]
    seen: set[tuple[str, bool]] = set()
    while waiting:
        name, functions = waiting.pop()
        if (name, functions) in seen or f"{name}.".startswith(LEFT_OUT):
            continue
        seen.add((name, functions))
        parts = name.split(".")
        packages = [".".join(parts[:end]) for end in range(1, len(parts))]
        waiting += [(package, False) for package in packages if package in project]
        module = project[name]
        for target in module.imports if functions else module.own_imports:
            owner = target if target in project else target.rpartition(".")[0]
            if owner in project:
                waiting.append((owner, True))
    return {name for name, _ in seen}


def digests(project: Mapping[str, Module]) -> dict[str, list[str]]:
    """Return, for each stage, a line per module that it can execute and per library for text."""
    package = RUNNER.rpartition(".")[0]
    names = [name for name in project if name.startswith(f"{package}.") and name != RUNNER]
    found = {}
    for name in (name for name in names if project[name].is_stage):
        modules = sorted(reach([RUNNER, name], project))
        libraries = {target.split(".")[0] for module in modules for target in project[module].imports}
        found[name.rpartition(".")[2]] = [
            *(f"code {project[module].digest} {module}" for module in modules),
            *(f"library {version(one)} {one}" for one in sorted(libraries & TEXT_LIBRARIES)),
        ]
    return found


def files_of(params: Params) -> dict[str, list[Path]]:
    """Return the files that keys of params.yaml name outside of download; a model.json for a model folder.

    The model.json has a digest of each file of the model.
    """
    start, models = params.train.start_from, params.augment.models
    return {
        "train.start_from": [Path(start, DESCRIPTION)] if start is not None else [],
        "augment.models": [Path(folder, DESCRIPTION) for folder in models],
        "augment.text": [*map(Path, params.augment.text)],
    }


def param_lines(params: Params, keys: Sequence[str], root: Path = Path()) -> list[str]:
    """Return a line `param KEY VALUE` for each of these keys, with its value as JSON.

    The value of a key that names files is a list of digests of their content; null for a missing one.
    """
    values, files = params.model_dump(mode="json"), files_of(params)
    found: dict[str, Any] = {key: functools.reduce(operator.getitem, key.split("."), values) for key in keys}
    found |= {
        key: [digest_of_file(root / path) if (root / path).exists() else None for path in files[key]]
        for key in keys
        if files.get(key)
    }
    return [f"param {key} {json.dumps(value, ensure_ascii=False)}" for key, value in found.items()]
