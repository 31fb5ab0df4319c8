"""The architecture: dependencies point one way, paths are in dvc.yaml, values in params.yaml."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import grimp
import networkx as nx  # type: ignore[import-untyped]
import pytest

from convs2s.config.section import NOTHING

ROOT = Path(__file__).parent.parent
COUNTING = "Composer"  # whose class in convs2s/config refuses YAML that is too large, and changes nothing
# From the roof down: a floor imports only from those below it, and parts separated by | not from each other.
FLOORS = """
    cli
    commands
    serve | fairseq
    package
    html
    train | decode | score
    search
    model, engine
    text
    ids
    config
    base
"""


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def stage_code() -> list[Path]:
    return [*modules("convs2s"), *modules("pipelines/stages")]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("convs2s", "pipelines", include_external_packages=True, cache_dir=None)


def imports(graph: grimp.ImportGraph, package: str) -> Iterator[tuple[str, str]]:
    """Yield the imports of a package as (module, imported module) pairs."""
    for module in graph.modules:
        if f"{module}.".startswith(f"{package}."):
            for name in graph.find_modules_directly_imported_by(module):
                yield module, name


def test_imports_point_one_way(graph: grimp.ImportGraph) -> None:
    """flows -> stages -> library, and within the library from the roof down."""
    floors: list[grimp.Layer] = [
        grimp.Layer(*re.findall(r"\w+", line), independent="|" in line)
        for line in FLOORS.split("\n")
        if line.strip()
    ]
    parts = {name for floor in floors for name in floor.module_tails}
    assert {name.split(".")[1] for name in graph.find_children("convs2s")} <= parts
    wrong = graph.find_illegal_dependencies_for_layers(floors, containers={"convs2s"})
    assert not wrong, [(one.importer, one.imported) for one in wrong]
    wrong = graph.find_illegal_dependencies_for_layers(
        ["flows", "report", "stages"], containers={"pipelines"}
    )
    assert not wrong, [(one.importer, one.imported) for one in wrong]


def test_there_is_no_circle_of_modules_or_folders(graph: grimp.ImportGraph) -> None:
    """Whoever reads from the top down then meets nothing that is not explained yet."""
    ours = {module for module in graph.modules if module.split(".")[0] in {"convs2s", "pipelines"}}
    packages = {module for module in ours if graph.find_children(module)}
    leaves = {package for package in packages if not graph.find_children(package) & packages}
    arrows = [(one, other) for one in ours for other in graph.find_modules_directly_imported_by(one) & ours]
    folders = [
        [name if (up := name.rpartition(".")[0]) not in leaves else up for name in arrow] for arrow in arrows
    ]
    for found in (arrows, [(one, other) for one, other in folders if one != other]):
        circles = nx.strongly_connected_components(nx.DiGraph(found))
        assert [sorted(circle) for circle in circles if len(circle) > 1] == []


def test_the_library_is_usable_without_dvc_and_prefect(graph: grimp.ImportGraph) -> None:
    """A stage, too, knows nothing of what runs it, nor of other stages; and flows compute nothing.

    What several stages need is in the library, or in a module whose name begins with _.
    """
    forbidden = {
        "convs2s": r"dvc|dvclive|prefect|pipelines",
        "pipelines.stages": r"dvc|prefect|pipelines(?!\.stages\._\w+$)",
        "pipelines.flows": "torch|numpy",
    }
    for package, names in forbidden.items():
        wrong = [pair for pair in imports(graph, package) if re.match(rf"({names})(\.|$)", pair[1])]
        assert wrong == []


def test_of_the_configuration_only_checked_values_get_out() -> None:
    """DVC tracks the values, not this code: sections do nothing but hold them."""
    for path in modules("convs2s/config"):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and [ast.unparse(base) for base in node.bases] != [COUNTING]:
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
                assert all(is_check(one) for one in methods), f"{path}: {node.name}"
                defaults = [one.value for one in node.body if isinstance(one, ast.AnnAssign) and one.value]
                # Recorded as null; or of a key that files lack which were written before it existed.
                assert all(re.match(r"None$|later\(", ast.unparse(one)) for one in defaults), node.name


def is_check(method: ast.FunctionDef) -> bool:
    """Return whether a method is a validator: it makes the value that is recorded, or changes nothing."""
    returned = {ast.unparse(one) for one in ast.walk(method) if isinstance(one, ast.Return)}
    decorators = [ast.unparse(decorator) for decorator in method.decorator_list]
    before = decorators[0].startswith("field_validator(") and decorators[0].endswith("mode='before')")
    return before or (decorators == ["model_validator(mode='after')"] and returned == {"return self"})


def test_paths_of_artifacts_are_only_in_dvc_yaml() -> None:
    """A stage without paths of its own can run on a temporary folder."""
    for path in stage_code():
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != NOTHING:
                assert not node.value.startswith("data/"), f"{path}:{node.lineno}: {node.value}"
