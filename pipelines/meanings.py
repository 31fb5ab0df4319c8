"""The meanings of the keys of params.yaml: the texts below them in the schema's source."""

import ast
import inspect
import itertools
import textwrap

from convs2s.config.section import Section


def meanings(section: type[Section]) -> dict[str, str]:
    """Return the meaning of each key of a section, by key."""
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        # A parametrized class, Base[float], has no source of its own; Base follows as another base.
        if issubclass(base, Section) and not base.__pydantic_generic_metadata__["args"]:
            found |= texts_below(base)
    return found


def texts_below(section: type[Section]) -> dict[str, str]:
    """Return the texts below the keys that a class itself declares, each on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(section))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        key.target.id: " ".join(text.value.value.split())
        for key, text in itertools.pairwise(body.body)
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(text.value.value, str)
    }


def sections() -> dict[str, type[Section]]:
    """Return all classes of the schema, by name."""
    found: dict[str, type[Section]] = {}
    waiting = [Section]
    while waiting:
        section = waiting.pop()
        found[section.__name__] = section
        waiting += section.__subclasses__()
    return found
