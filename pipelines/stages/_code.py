"""The project's own code: for each stage, digests of all modules that it can execute.

Every stage depends on its digests, so an edit reruns the stages that can execute the edited code, and no
others. Imports determine what a stage can execute, so there is no list to maintain:

- all imports are followed from the stage's module and the runner, including those inside functions;
- a package's `__init__` runs when one of its modules is imported: its top-level statements count, but its
  functions count only where the package itself is imported (`from convs2s import load`).

Comments and docstrings are left out because they cannot change an output; so are modules that only declare
the schema of params.yaml, whose values the snapshot has.
"""

import ast
import functools
import hashlib
import io
import json
import operator
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from convs2s.config.load import parse_params
from convs2s.config.params import Params

RUNNER = "pipelines.stages.__main__"
WITHOUT_CODE = {"checksums", "snapshot"}  # stages that find out what the code is
BLOCKS = ast.stmt, ast.excepthandler, ast.match_case


class Module:
    """A Python file of the project.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def content(self) -> bytes:
        """The file's bytes, read once: all properties are of the same version."""
        return self.path.read_bytes()

    @cached_property
    def source(self) -> str:
        """The file's text."""
        return io.TextIOWrapper(io.BytesIO(self.content), encoding="utf-8").read()

    @cached_property
    def checksum(self) -> str:
        """MD5 of the file."""
        return md5(self.content)

    @cached_property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return ast.parse(self.source, str(self.path))

    @cached_property
    def imports(self) -> set[str]:
        """Names that the module imports, including inside functions: modules, or attributes of modules."""
        return imported(self.tree, functions=True)

    @cached_property
    def own_imports(self) -> set[str]:
        """Names that the module imports when it is itself imported."""
        return imported(self.tree, functions=False)

    @cached_property
    def is_schema(self) -> bool:
        """Whether the module only declares the schema of params.yaml."""
        return self.path.parent.name == "config" and declares_schema(self.tree)

    @cached_property
    def is_stage(self) -> bool:
        """Whether the module has a function `run`."""
        return any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in self.tree.body)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the code without comments and docstrings."""
        return hashlib.sha256(bare(self.source, self.tree).encode()).hexdigest()


def imported(tree: ast.Module, functions: bool) -> set[str]:
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
    for child in parts(tree):
        if functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child, functions)


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node's statements, `except` clauses and `case` blocks, but not its many expressions."""
    for field in node._fields:
        held = getattr(node, field)
        if isinstance(held, list) and held and isinstance(held[0], BLOCKS):
            yield from held


def bare(source: str, tree: ast.Module) -> str:
    """Return Python code without comments, strings that are statements (docstrings), and empty lines.

    This returns text rather than a syntax tree because the same code has different trees in different
    versions of Python.
    """
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    in_string = set(lines_that_end_in_a_string(tokens))
    lines = [(line, number in in_string) for number, line in enumerate(source.split("\n"), start=1)]
    cuts = [(*token.start, *token.end) for token in tokens if token.type == tokenize.COMMENT]
    for node in statements(tree, functions=True):
        if is_docstring(node):
            assert node.end_lineno is not None and node.end_col_offset is not None
            first = character(lines[node.lineno - 1][0], node.col_offset)
            last = character(lines[node.end_lineno - 1][0], node.end_col_offset)
            cuts.append((node.lineno, first, node.end_lineno, last))
    for first_line, first, last_line, last in sorted(cuts, reverse=True):
        rest, verbatim = lines[last_line - 1]
        lines[first_line - 1 : last_line] = [(lines[first_line - 1][0][:first] + rest[last:], verbatim)]
    kept = (line if verbatim else line.rstrip() for line, verbatim in lines if verbatim or line.strip())
    return "\n".join(kept)


def lines_that_end_in_a_string(tokens: Iterable[tokenize.TokenInfo]) -> Iterator[int]:
    """Yield the numbers of the lines whose end belongs to a string, where white space counts."""
    begun = []  # lines where f-strings begin, which are several tokens since Python 3.12
    for token in tokens:
        if tokenize.tok_name[token.type] == "FSTRING_START":
            begun.append(token.start[0])
        elif tokenize.tok_name[token.type] == "FSTRING_END":
            yield from range(begun.pop(), token.end[0])
        elif token.type == tokenize.STRING:
            yield from range(token.start[0], token.end[0])


def character(line: str, offset: int) -> int:
    """Return the index of the character at a byte offset, which is how syntax trees count."""
    return len(line.encode()[:offset].decode())


def declares_schema(tree: ast.Module) -> bool:
    """Return whether code consists of imports, type aliases, and classes of fields and validators.

    The validators either raise an error or return the section unchanged. Such code cannot change what a stage
    computes: values come from params.yaml.
    """
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    others = [node for node in tree.body if not isinstance(node, ast.ClassDef)]
    return (
        bool(classes)
        and all(is_declaration(node) for node in others)
        and all(is_field(node) or is_validator(node) for one in classes for node in one.body)
    )


def is_declaration(node: ast.stmt) -> bool:
    """Return whether a statement is an import, a docstring, or a type alias."""
    if isinstance(node, ast.Assign):
        value = node.value
        is_type_variable = isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar"
        return isinstance(value, ast.Subscript | ast.Name | ast.BinOp) or is_type_variable
    return isinstance(node, ast.Import | ast.ImportFrom) or is_docstring(node)


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is a string, which has no effect."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def is_field(node: ast.stmt) -> bool:
    """Return whether a statement of a class declares a field or configures the schema."""
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets] == ["model_config"]
    return (isinstance(node, ast.AnnAssign) and node.value is None) or is_docstring(node)


def is_validator(node: ast.stmt) -> bool:
    """Return whether a statement of a class is a validator that changes nothing."""
    if not isinstance(node, ast.FunctionDef):
        return False
    returned = [ast.unparse(one.value) for one in ast.walk(node) if isinstance(one, ast.Return) and one.value]
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return decorators == ["model_validator(mode='after')"] and set(returned) == {"self"}


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
    """Return these modules and all others of the project that they can execute."""
    waiting = [(name, True) for name in names]
    seen: set[tuple[str, bool]] = set()
    while waiting:
        name, functions = waiting.pop()
        if (name, functions) in seen:
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
    """Return, for each stage, a line with digest and name for each module that it can execute."""
    package = RUNNER.rpartition(".")[0]
    names = [name for name in project if name.startswith(f"{package}.") and name != RUNNER]
    stages = {name.rpartition(".")[2]: name for name in names if project[name].is_stage}
    return {
        stage: [
            f"{project[module].digest} {module}"
            for module in sorted(reach([RUNNER, name], project))
            if not project[module].is_schema
        ]
        for stage, name in stages.items()
        if stage not in WITHOUT_CODE
    }


def checksums(params: str, project: Mapping[str, Module]) -> list[str]:
    """Return a line with MD5 and name for params.yaml, whose comments do not count, and each module.

    Args:
        params: the text of params.yaml.

    Raises:
        ValueError: if params.yaml is invalid.
    """
    values = parse_params(params, "params.yaml").model_dump_json()
    texts = {"params.yaml": values.encode()} | {
        str(module.path): module.content for module in project.values()
    }
    return [f"{md5(content)} {name}" for name, content in texts.items()]


def md5(content: bytes) -> str:
    """Return the MD5 of a file's content."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def param_lines(params: Params, keys: Sequence[str]) -> list[str]:
    """Return a line `param KEY VALUE` for each of these keys, with its value as JSON."""
    values = params.model_dump(mode="json")
    found = {key: functools.reduce(operator.getitem, key.split("."), values) for key in keys}
    return [f"param {key} {json.dumps(value, ensure_ascii=False)}" for key, value in found.items()]
