"""The house: arrows point one way, paths are in dvc.yaml, values in params.yaml."""

import ast
import functools
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.config.params import Params
from convs2s.config.train import TrainParams

ROOT = Path(__file__).parent.parent
# What each part may import of the others.
ALLOWED: dict[str, set[str]] = {
    "convs2s.config": {"convs2s.config"},
    "convs2s.text": {"convs2s.config", "convs2s.english_german_grammar", "convs2s.text"},
    "convs2s.model": {"convs2s.config", "convs2s.model"},
    "convs2s.train": {"convs2s.model", "convs2s.text", "convs2s.train"},
    "convs2s.decode": {"convs2s.config", "convs2s.model", "convs2s.text", "convs2s.decode"},
    "convs2s.score": {"convs2s.score", "convs2s.text"},
    "convs2s.exchange": {
        "convs2s.config", "convs2s.decode", "convs2s.exchange", "convs2s.model", "convs2s.package",
        "convs2s.text",
    },
    "convs2s.commands": {
        "convs2s.config", "convs2s.decode", "convs2s.exchange", "convs2s.model", "convs2s.package",
        "convs2s.score", "convs2s.text",
    },
    "convs2s.english_german_grammar": {"convs2s.english_german_grammar"},
    "convs2s.package": {
        "convs2s.config", "convs2s.decode", "convs2s.model", "convs2s.package", "convs2s.text",
    },
    "convs2s.cli": {"convs2s.commands"},
    "convs2s": {"convs2s.package"},
}  # fmt: skip
# Carries data about without a say in what they become: an edit there reruns nothing.
PLUMBING = {
    "convs2s/__init__.py",
    "convs2s/text/alignment/compiled.py",
    "convs2s/text/alignment/threads.py",
    "convs2s/text/alignment/word_ids.py",
    "convs2s/text/corpus/encoded.py",
    "convs2s/text/corpus/files.py",
    "convs2s/text/corpus/pair_folder.py",
    "convs2s/text/corpus/parallel.py",
    "convs2s/text/corpus/zstd.py",
    "convs2s/package/folder.py",  # folders of models, which no stage but package writes
}
FOR_FLOWS = {
    "convs2s.config.load",
    "convs2s.config.model",
    "convs2s.config.params",
    "convs2s.score.curves",
    "convs2s.text.corpus.files",
    "pipelines",
    "pipelines.results",
    "pipelines.results.ablation",
}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Return all modules that a file imports, functions included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


@pytest.mark.parametrize("path", modules("convs2s"), ids=dotted)
def test_imports_point_one_way(path: Path) -> None:
    """flows -> stages -> library; the library knows neither DVC nor Prefect."""
    for name in imports(path):
        root = name.split(".", maxsplit=1)[0]
        assert root not in {"dvc", "dvclive", "prefect", "pipelines"}, f"{dotted(path)} imports {name}"
        if root == "convs2s":
            assert part(name) in ALLOWED[part(dotted(path))], f"{dotted(path)} imports {name}"


@pytest.mark.parametrize("path", modules("pipelines/stages"), ids=dotted)
def test_stages_import_only_the_library(path: Path) -> None:
    """A stage knows neither another stage nor who runs it."""
    for name in imports(path):
        if path.stem == "results" and name.startswith("pipelines.results"):
            continue
        assert name.split(".")[0] not in {"dvc", "prefect", "pipelines"}, f"{dotted(path)} imports {name}"


@pytest.mark.parametrize("path", modules("pipelines/flows"), ids=dotted)
def test_flows_run_stages_through_dvc_and_compute_nothing(path: Path) -> None:
    """Of the library they take what checks parameters, draws a picture and writes a file whole."""
    for name in imports(path):
        if name.split(".")[0] in {"convs2s", "pipelines"}:
            assert name.startswith("pipelines.flows") or name in FOR_FLOWS, f"{dotted(path)} imports {name}"
        assert name.split(".")[0] not in {"torch", "numpy"}, f"{dotted(path)} imports {name}"


def test_empty_package_files_stay_empty() -> None:
    """Names are imported from where they are defined; only convs2s itself offers one, lazily."""
    for path in [*modules("convs2s"), *modules("pipelines")]:
        if path.name == "__init__.py" and path != ROOT / "convs2s" / "__init__.py":
            assert path.read_text(encoding="utf-8") == "", path


def module_of(stage: dict[str, Any]) -> Path:
    """Return the file of a stage's module, from its command."""
    name = str(stage["cmd"]).split("-m ")[1].split()[0]
    return ROOT / (name.replace(".", "/") + ".py")


@pytest.mark.parametrize("name", stages())
def test_a_stage_is_a_module_that_its_command_runs_and_dvc_watches(name: str) -> None:
    """Stage = module; replace-ensemble shares its module with replace, and tune-ensemble with tune."""
    stage = stages()[name]
    module = module_of(stage)
    assert module.stem == name.removesuffix("-ensemble")
    assert str(module.relative_to(ROOT)) in stage["deps"]


def needed(path: Path) -> set[str]:
    """Return the library's files that a module needs, through all imports at its top."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        for name in imports(waiting.pop()):
            if name.startswith("convs2s."):
                file = ROOT / (name.replace(".", "/") + ".py")
                relative = str(file.relative_to(ROOT))
                plumbing = relative in PLUMBING or relative.startswith("convs2s/config/")
                if relative not in found and not plumbing and file.is_file():
                    found.add(relative)
                    waiting.append(file)
    return found


# What decoding takes of its models and tokenizers changes with their outputs, which are watched.
WATCHED_BY_OUTPUT = {
    "tune": {"convs2s/text", "convs2s/model", "convs2s/decode"},
    "tune-ensemble": {"convs2s/text", "convs2s/model", "convs2s/decode"},
    "translate": {"convs2s/text", "convs2s/model", "convs2s/decode"},
    "ensemble": {"convs2s/text", "convs2s/model", "convs2s/decode"},
    "replace": {"convs2s/text", "convs2s/decode"},
    "replace-ensemble": {"convs2s/text", "convs2s/decode"},
    "evaluate": {"convs2s/text", "convs2s/decode"},
    "package": {"convs2s/text", "convs2s/decode"},
    "encode": {"convs2s/text/vocabulary/bpe.py", "convs2s/text/vocabulary/vocabulary.py"},
    "vocabulary": {"convs2s/text/vocabulary/codec.py"},
    "train": {"convs2s/text/alignment/candidates.py", "convs2s/text/vocabulary/vocabulary.py"},
}


@pytest.mark.parametrize("name", stages())
def test_dvc_watches_the_code_that_a_stage_needs(name: str) -> None:
    """Else an edit of an algorithm would leave stale results."""
    stage = stages()[name]
    watched = [str(dep) for dep in stage["deps"]]
    watched += sorted(WATCHED_BY_OUTPUT.get(name, set()))
    for file in sorted(needed(module_of(stage))):
        assert any(file == w or file.startswith(w + "/") for w in watched), f"{name} needs {file}, unwatched"


def test_every_code_dependency_exists() -> None:
    """A path that has moved would make DVC fail."""
    for name, stage in stages().items():
        for dep in stage["deps"]:
            if str(dep).startswith(("convs2s", "pipelines")):
                assert (ROOT / str(dep)).exists(), f"{name}: {dep}"


def test_training_depends_on_every_value_that_can_change_its_outcome() -> None:
    """All of `train` but the list of seeds and how often a checkpoint is saved."""
    listed = {
        str(p).removeprefix("train.") for p in stages()["train"]["params"] if str(p).startswith("train.")
    }
    assert listed == set(TrainParams.model_fields) - {"seeds", "checkpoint_updates"}
    assert "model" in stages()["train"]["params"]


def test_every_section_of_params_yaml_belongs_to_a_stage() -> None:
    """No dead values: `model` is the section of train."""
    listed = {str(p).split(".")[0] for stage in stages().values() for p in stage.get("params", [])}
    assert listed == set(Params.model_fields)


def test_paths_of_artifacts_are_only_in_dvc_yaml() -> None:
    """`run` can then be called on a temporary folder."""
    for path in [*modules("convs2s"), *modules("pipelines/stages")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith("data/"), f"{path}:{node.lineno}: {node.value}"
