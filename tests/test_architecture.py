"""The architecture: dependencies point one way, paths are in dvc.yaml, values in params.yaml."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
# What each part may import from the others.
ALLOWED: dict[str, set[str]] = {
    "convs2s.config": {"convs2s.config", "convs2s.messages"},
    "convs2s.processes": set(),
    "convs2s.watch": {"convs2s.watch"},
    "convs2s.text": {
        "convs2s.config", "convs2s.messages", "convs2s.processes",
        "convs2s.text", "convs2s.watch",
    },
    "convs2s.model": {"convs2s.config", "convs2s.model"},
    "convs2s.engine": {"convs2s.engine", "convs2s.model", "convs2s.text"},
    "convs2s.train": {
        "convs2s.config", "convs2s.engine", "convs2s.messages", "convs2s.model", "convs2s.processes",
        "convs2s.text", "convs2s.train", "convs2s.watch",
    },
    "convs2s.decode": {
        "convs2s.config", "convs2s.decode", "convs2s.engine", "convs2s.model", "convs2s.processes",
        "convs2s.text",
    },
    "convs2s.score": {"convs2s.score", "convs2s.text"},
    "convs2s.exchange": {
        "convs2s.config", "convs2s.decode", "convs2s.exchange", "convs2s.model", "convs2s.package",
        "convs2s.text",
    },
    "convs2s.commands": {
        "convs2s.commands", "convs2s.config", "convs2s.decode", "convs2s.exchange", "convs2s.messages",
        "convs2s.model", "convs2s.package", "convs2s.score", "convs2s.serve", "convs2s.text",
    },
    "convs2s.serve": {"convs2s.package", "convs2s.serve", "convs2s.text"},
    "convs2s.package": {
        "convs2s.config", "convs2s.decode", "convs2s.model", "convs2s.package", "convs2s.text",
    },
    "convs2s.cli": {"convs2s.commands", "convs2s.messages"},
    "convs2s.messages": set(),
    "convs2s": {"convs2s.package"},
}  # fmt: skip
FOR_FLOWS = {
    "convs2s.config.load",
    "convs2s.config.model",
    "convs2s.config.params",
    "convs2s.score.curves",
    "convs2s.text.corpus.files",
    "convs2s.text.corpus.parallel",
    "pipelines",
    "pipelines.check",
    "pipelines.preset",
    "pipelines.repair",
    "pipelines.stages._code",
    "pipelines.stages._params",
    "pipelines.stages.snapshot",
    "pipelines.sweep_table",
}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Return all modules that a file imports, including inside functions."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name"
            found.add(node.module or "")
    return frozenset(found)


def part(name: str) -> str:
    """Return the part of the library that a module belongs to."""
    return ".".join(name.split(".")[:2])


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def stages() -> dict[str, dict[str, Any]]:
    content = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    return dict(content["stages"])


def imported(package: str) -> Iterator[tuple[str, str]]:
    """Yield the imports of a package as (module, imported module) pairs."""
    for path in modules(package):
        for name in imports(path):
            yield dotted(path), name


def test_imports_point_one_way() -> None:
    """flows -> stages -> library; the library must be usable without DVC and Prefect."""
    for module, name in imported("convs2s"):
        root = name.split(".", maxsplit=1)[0]
        assert root not in {"dvc", "dvclive", "prefect", "pipelines"}, f"{module} imports {name}"
        if root == "convs2s":
            assert part(name) in ALLOWED[part(module)], f"{module} imports {name}"


def test_stages_import_only_the_library() -> None:
    """A stage must not depend on another stage or on what runs it."""
    for module, name in imported("pipelines/stages"):
        root = name.split(".", maxsplit=1)[0]
        runner = name in {
            f"pipelines.stages.{part}" for part in ("values", "_code", "_inputs", "_lifetime", "_params")
        }
        assert runner or root not in {"dvc", "prefect", "pipelines"}, f"{module} imports {name}"


def test_flows_run_stages_through_dvc_and_compute_nothing() -> None:
    """Flows use the library only to check parameters, draw a picture and write files atomically."""
    for module, name in imported("pipelines/flows"):
        if name.split(".")[0] in {"convs2s", "pipelines"}:
            assert name.startswith("pipelines.flows") or name in FOR_FLOWS, f"{module} imports {name}"
        assert name.split(".")[0] not in {"torch", "numpy"}, f"{module} imports {name}"


def test_empty_package_files_stay_empty() -> None:
    """Names are imported from where they are defined; only convs2s itself re-exports, lazily.

    pipelines/__init__.py checks where the code comes from, for every entrance.
    """
    filled = {ROOT / "convs2s" / "__init__.py", ROOT / "pipelines" / "__init__.py"}
    for path in [*modules("convs2s"), *modules("pipelines")]:
        if path.name == "__init__.py" and path not in filled:
            assert path.read_text(encoding="utf-8") == "", path


def test_a_stage_depends_on_the_digest_of_its_code_and_on_no_other_code() -> None:
    """The digest follows the stage's imports; a list kept by hand would miss some and leave stale results."""
    for name, stage in stages().items():
        module = re.match(r"python -m pipelines\.stages ([a-z]+) ", str(stage["cmd"]))
        assert module is not None, stage["cmd"]
        deps = [str(dep) for dep in stage.get("deps", [])]
        code = [dep for dep in deps if dep.startswith(("convs2s", "pipelines", "data/snapshot"))]
        first = name in {"checksums", "snapshot"}
        item = "@${item.split}" * (name == "download")
        wanted = ["convs2s", "pipelines/stages"] if first else [f"data/snapshot/{name}{item}.txt"]
        assert code == wanted, name


def test_imports_can_be_read_off_the_code() -> None:
    """Digests follow only `from ... import`; just the runner imports our modules by a computed name."""
    for path in [*modules("convs2s"), *modules("pipelines/stages")]:
        for node in nodes(path):
            if isinstance(node, ast.Import):
                ours = [a.name for a in node.names if a.name.split(".")[0] in {"convs2s", "pipelines"}]
                assert not ours, f"{dotted(path)} imports {ours} without from"
            if isinstance(node, ast.Call) and called(node) in {"import_module", "__import__"}:
                assert path.stem == "__main__" or "convs2s" not in ast.unparse(node), dotted(path)
                assert path.stem in {"__main__", "imported_codec", "export"}, f"{dotted(path)}:{node.lineno}"


def called(node: ast.Call) -> str:
    """Return the last part of the called function's name."""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def test_paths_of_artifacts_are_only_in_dvc_yaml() -> None:
    """A stage without paths of its own can run on a temporary folder."""
    for path in [*modules("convs2s"), *modules("pipelines/stages")]:
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith("data/"), f"{path}:{node.lineno}: {node.value}"


def test_tests_with_a_server_are_where_make_test_flows_looks_for_them() -> None:
    """`make test-flows` collects only that folder, which halves the time that its workers take to start."""
    marker = re.compile(r"pytest\.mark\.flows\b")
    marked = {path for path in modules("tests") if marker.search(path.read_text(encoding="utf-8"))}
    assert marked
    assert [path for path in marked if path.parent != ROOT / "tests" / "flows"] == []
    assert re.search(r'-m "flows\b.*" tests/flows\n', (ROOT / "Makefile").read_text(encoding="utf-8"))
