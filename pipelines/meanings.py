"""The meanings of the keys of params.yaml: the texts below them in the schema's source."""

import ast
import inspect
import itertools
import textwrap

from convs2s.config.section import Section


def meanings(section: type[Section]) -> dict[str, str]:
    """Return the meaning of each key of a section on one line, by key."""
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        # A parametrized class, Base[float], has no source of its own; Base follows as another base.
        if not issubclass(base, Section) or base.__pydantic_generic_metadata__["args"]:
            continue
        # Siblings in the syntax tree follow each other.
        for pair in itertools.pairwise(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base))))):
            match pair:
                case ast.AnnAssign(ast.Name(key)), ast.Expr(ast.Constant(str(text))):
                    found[key] = " ".join(text.split())
    return found


def sections() -> dict[str, type[Section]]:
    """Return all classes of the schema, by name."""
    found: dict[str, type[Section]] = {}
    waiting = [Section]
    while waiting:
        section = waiting.pop()
        found[section.__name__] = section
        waiting += section.__subclasses__()
    return found
