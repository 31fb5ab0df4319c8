"""Markdown: tables, code, and figures with standard deviations."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd


def table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the lines of a table, headed by the keys of its rows; pipes in cells are escaped."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows)] if rows else []
    escaped = [[cell.replace("|", r"\|").replace("\n", " ") for cell in line] for line in lines]
    return [f"| {' | '.join(line)} |" for line in escaped]


def code(text: str) -> str:
    """Return text as code; empty text stays empty."""
    return f"`{text}`" if text else ""


def given(value: Any) -> bool:
    """Return whether a cell of a record or a data frame has a value."""
    return not (pd.api.types.is_scalar(value) and (pd.isna(value) or value == ""))


def figure(value: Any, deviation: Any = None, missing: str = "", digits: int = 2) -> str:
    """Return a number, and its standard deviation if there is one."""
    if not given(value):
        return missing
    return " ± ".join(f"{float(one):,.{digits}f}" for one in (value, deviation) if given(one))
