"""The reference page of params.yaml: type, default and meaning of every key, and what an edit reruns."""

from collections.abc import Iterator, Mapping
from typing import Any

from convs2s.config.params import Params
from pipelines.check import shown
from pipelines.meanings import meanings, sections
from pipelines.reference.reruns import Stages, first_stages
from pipelines.reference.types import kind
from pipelines.results.markdown import code, table

HEAD = """\
# Every parameter

`make reference` writes this page from the schema in `convs2s/config`, `experiments/base.yaml` and `dvc.yaml`.
[parameters.md](parameters.md) explains how to use them, and `python -m pipelines.check --list` shows the
values in your `params.yaml`. Defaults are the values of `experiments/base.yaml`, the experiment of a fresh
clone. *Reruns* names the first stages that an edit reruns; later stages follow, unless their inputs come out
unchanged.
"""
SOURCES = """\
## Sources

A source is an entry of `download.train`, `valid`, `development` or `test`; its `kind` determines its other
keys.
"""
LONGEST = 60  # characters of a default to show


def page(base: Params, stages: Stages) -> str:
    """Return the page as Markdown."""
    schema = Params.model_json_schema()
    classes = schema["$defs"]
    lines = [HEAD]
    for section, reference in schema["properties"].items():
        name = reference["$ref"].rpartition("/")[2]
        lines += [f"## {section}", "", one_line(classes[name]["description"]), ""]
        texts = meanings(sections()[name])
        lines += [*table(list(rows(section, classes[name], texts, getattr(base, section), stages))), ""]
    lines.append(SOURCES)
    for name, content in parts(classes).items():
        lines += [
            f"### {name}",
            "",
            one_line(content["description"]),
            "",
            *table(list(parts_rows(content, meanings(sections()[name])))),
            "",
        ]
    return "\n".join(lines)


def rows(
    section: str, content: Mapping[str, Any], texts: Mapping[str, str], base: Any, stages: Stages
) -> Iterator[dict[str, str]]:
    """Yield a row per key of a section."""
    for key, field in content["properties"].items():
        first = first_stages(f"{section}.{key}", stages)
        yield {
            "key": code(f"{section}.{key}"),
            "value": kind(field),
            "default": code(shortened(shown(getattr(base, key)))),
            "meaning": texts[key],
            "reruns": ", ".join(code(stage) for stage in first) or "nothing",
        }


def parts(classes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes that are not sections: sources, files to fetch, vocabulary selection."""
    sections = {str(getattr(field.annotation, "__name__", "")) for field in Params.model_fields.values()}
    return {name: content for name, content in classes.items() if name not in sections}


def parts_rows(content: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield a row per key of a class that is not a section."""
    for key, field in content["properties"].items():
        yield {"key": code(key), "value": kind(field), "meaning": texts.get(key, "")}


def one_line(text: str) -> str:
    """Return a docstring without line breaks."""
    return " ".join(text.split())


def shortened(text: str) -> str:
    """Return the beginning of a long value."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
