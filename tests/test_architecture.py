"""The architecture: dependencies point one way, paths are in dvc.yaml, values in params.yaml."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import grimp
import networkx as nx  # type: ignore[import-untyped]
import pytest

from pipelines.stages._code import LEFT_OUT, RUNNER, digests, read_project
from pipelines.stages.snapshot import PACKAGES

ROOT = Path(__file__).parent.parent
# From the roof down: a floor imports only from those below it, and parts separated by | not from each other.
FLOORS = """
    cli
    commands
    serve | exchange
    package
    train | decode | score
    model, engine
    text
    ids
    config
    base
    watch
"""

SEARCHING = {"search", "match", "fullmatch", "findall", "startswith", "endswith", "find", "index"}


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

    What several stages need is in the library, or in a module whose name begins with _, or in values.
    """
    forbidden = {
        "convs2s": r"dvc|dvclive|prefect|pipelines",
        "pipelines.stages": r"dvc|prefect|pipelines(?!\.stages\.(values|_\w+)$)",
        "pipelines.flows": "torch|numpy",
    }
    for package, names in forbidden.items():
        wrong = [pair for pair in imports(graph, package) if re.match(rf"({names})(\.|$)", pair[1])]
        assert wrong == []


def test_imports_can_be_read_off_the_code() -> None:
    """Digests follow only `from ... import`; just the runner imports our modules by a computed name."""
    for path in stage_code():
        for node in nodes(path):
            place = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                ours = [a.name for a in node.names if a.name.split(".")[0] in {"convs2s", "pipelines"}]
                assert not ours, f"{place} imports {ours} without from"
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{place}: import by the full name"
            if isinstance(node, ast.Call) and called(node) in {"import_module", "__import__"}:
                assert path.stem == "__main__" or "convs2s" not in ast.unparse(node), place
                assert path.stem in {"__main__", "subword_nmt", "export"}, place


def test_digests_name_all_that_a_stage_imports(graph: grimp.ImportGraph) -> None:
    """An edit of a module without a digest would rerun nothing. Here, grimp follows the imports."""
    for stage, lines in digests(read_project(map(Path, PACKAGES), ROOT)).items():
        watched = {line.split(" ")[2] for line in lines}
        for module in (f"pipelines.stages.{stage}", RUNNER):
            reached = {module} | {one for one in graph.find_upstream_modules(module) if "." in one}
            missed = {one for one in reached - watched if not f"{one}.".startswith(LEFT_OUT)}
            assert not missed, stage


def called(node: ast.Call) -> str:
    """Return the last part of the called function's name."""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def test_of_the_configuration_only_checked_values_get_out() -> None:
    """Digests leave it out, because its values are recorded: sections do nothing but hold them."""
    assert LEFT_OUT == ("convs2s.config.", "convs2s.watch.")
    for path in modules("convs2s/config"):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
                assert all(is_check(one) for one in methods), f"{path}: {node.name}"
                defaults = [one.value for one in node.body if isinstance(one, ast.AnnAssign) and one.value]
                assert {ast.unparse(value) for value in defaults} <= {"None"}, node.name  # recorded as null


def is_check(method: ast.FunctionDef) -> bool:
    """Return whether a method is a validator: it makes the value that is recorded, or changes nothing."""
    returned = {ast.unparse(one) for one in ast.walk(method) if isinstance(one, ast.Return)}
    decorators = [ast.unparse(decorator) for decorator in method.decorator_list]
    before = decorators[0].startswith("field_validator(") and decorators[0].endswith("mode='before')")
    return before or (decorators == ["model_validator(mode='after')"] and returned == {"return self"})


def test_what_only_shows_and_counts_returns_nothing() -> None:
    """Digests leave it out, because without a value it cannot change a result."""
    for path in modules("convs2s/watch"):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef | ast.Module):
                for one in node.body:
                    if isinstance(one, ast.FunctionDef) and not re.match(
                        r"_(?!_)|__enter__|__init__", one.name
                    ):
                        assert one.returns and ast.unparse(one.returns) == "None", f"{path}: {one.name}"
    for path in stage_code():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("convs2s.watch"):
                constants = [one.name for one in node.names if one.name.isupper()]
                assert path.parent.name == "watch" or not constants, f"{path} imports {constants}"


def test_no_code_decides_by_the_text_of_an_error() -> None:
    """Digests leave it out. The text may decide which error is raised instead."""
    for path in stage_code():
        for handler in (node for node in nodes(path) if isinstance(node, ast.ExceptHandler) and node.name):
            texts = {f"str({handler.name})", f"{handler.name}.args", f"{{{handler.name}}}"}
            deciding = [
                ast.unparse(node)
                for node in ast.walk(handler)
                if isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and called(node) in SEARCHING)
            ]
            ends = isinstance(handler.body[-1], ast.Raise)
            assert ends or not [one for one in deciding if any(text in one for text in texts)], path


def test_paths_of_artifacts_are_only_in_dvc_yaml() -> None:
    """A stage without paths of its own can run on a temporary folder."""
    for path in stage_code():
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith("data/"), f"{path}:{node.lineno}: {node.value}"
