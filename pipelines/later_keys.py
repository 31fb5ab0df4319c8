"""Keys that a section of params.yaml gained after a run, which DVC would take for changed values.

DVC compares whole sections with those in dvc.lock, and does not know which values mean the same.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from convs2s.config.faults import models_in
from convs2s.config.load import MOVED, parse_yaml, read_text
from convs2s.config.params import Params
from convs2s.config.translate import TranslateSection
from pipelines.stages._declared import PARAMS, find_value


def check_record(root: Path) -> None:
    """Check that DVC would run no stage only because a section has gained a key; raise a ValueError."""
    lock = root / "dvc.lock"
    if not lock.is_file():
        return
    recorded = (parse_yaml(lock.read_text(encoding="utf-8"), str(lock)) or {}).get("stages", {})
    params = parse_yaml(read_text(root / PARAMS), str(PARAMS))
    stages = parse_yaml(read_text(root / "dvc.yaml"), "dvc.yaml")["stages"]
    items: list[str] = []
    keys: set[str] = set()
    for item in list_items(stages, params):
        values = recorded.get(item, {}).get("params", {}).get("params.yaml", {})
        if later_keys := list_later(values, params):
            items.append(item)
            keys.update(later_keys)
    if items:
        raise ValueError(
            f"{root / PARAMS} and {lock} differ by keys that came later and have their default, which means "
            f"as before: {', '.join(sorted(keys))}. For these alone, DVC would run stages again.\n"
            f"To keep their results: dvc commit --force {' '.join(items)}\n"
            "(This takes code and files as they are, too: dvc status shows if they have changed.)\n"
            "To run them again: dvc repro"
        )


def list_items(stages: Mapping[str, Any], params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the items of the stages of dvc.yaml, such as train@1, or the name of a stage without a matrix."""
    for name, stage in stages.items():
        if "matrix" not in stage:
            yield name
            continue
        axes = [list_axis(values, params) for values in stage["matrix"].values()]
        for values in itertools.product(*axes):
            yield f"{name}@{'-'.join(map(str, values))}"


def list_axis(values: str | Sequence[Any], params: Mapping[str, Any]) -> Sequence[Any]:
    """Return the values of an axis of a matrix: a list, or a text such as ${seeds}, a list of params.yaml."""
    if not isinstance(values, str):
        return values
    axis: Sequence[Any] = find_value(values.removeprefix("${").removesuffix("}"), params)
    return axis


@dataclass(frozen=True)
class Difference:
    """A value in dvc.lock that is not the one in params.yaml."""

    name: str
    """Dotted name of the value."""
    means_the_same: bool
    """Whether a later key is the reason: one of the two files lacks it, and the other has its default."""


def list_later(recorded: Mapping[str, Any], params: Mapping[str, Any]) -> list[str]:
    """Return the later keys by which recorded values differ from params.yaml; none if they differ otherwise.

    Args:
        recorded: what dvc.lock has for a stage: values of sections or of single keys, by dotted name.
    """
    differences: list[Difference] = []
    for name, value in recorded.items():
        differences += find_differences(name, value, params)
    if not all(difference.means_the_same for difference in differences):
        return []
    return [difference.name for difference in differences]


def find_differences(name: str, recorded: Any, params: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield how a recorded value differs from that of params.yaml; of a section, key by key."""
    annotation: Any = Params
    current: Any = params
    for key in name.split("."):
        fields = fields_of(annotation)
        if key not in fields or key not in current:  # dvc.lock is of another version
            yield Difference(name, means_the_same=False)
            return
        annotation = fields[key].annotation
        current = current[key]
    yield from list_differences(annotation, recorded, current, name)


def fields_of(annotation: Any) -> dict[str, FieldInfo]:
    """Return the fields of the sections in an annotation by key, with those that have moved elsewhere."""
    fields = {key: field for schema in models_in(annotation) for key, field in schema.model_fields.items()}
    if annotation is TranslateSection:
        fields |= {
            key: fields_of(Params.model_fields[section].annotation)[key] for key, section in MOVED.items()
        }
    return fields


def list_differences(annotation: Any, recorded: Any, current: Any, name: str) -> Iterator[Difference]:
    """Yield the differences between two values of a key or section, which has this dotted name."""
    if recorded == current:
        return
    if not (isinstance(recorded, dict) and isinstance(current, dict)):
        yield Difference(name, means_the_same=False)
        return
    fields = fields_of(annotation)
    for key, value in {**recorded, **current}.items():
        key_name = f"{name}.{key}"
        field = fields.get(key)
        if field is None:
            yield Difference(key_name, means_the_same=False)
        elif key in recorded and key in current:
            yield from list_differences(field.annotation, recorded[key], current[key], key_name)
        else:
            is_later = field.json_schema_extra is not None  # from `later`
            yield Difference(key_name, means_the_same=is_later and value == field.default)
