"""Names are read from pickles of every protocol, and nothing is executed."""

import fractions
import io
import os
import pickle
from typing import Any

import pytest

from convs2s.exchange.pickle_names import Survey, survey

pytestmark = pytest.mark.fault("security")


class Command:
    """Runs a shell command when it is unpickled carelessly."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def names(*pickles: bytes) -> list[str]:
    return survey(io.BytesIO(b"".join(pickles)), len(pickles)).names


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_name_is_found_in_every_protocol(protocol: int) -> None:
    """From protocol 4 on, a name is two strings on the stack; objects around it must not interfere."""
    content = {"a": [1, (2.5, "x"), {"b": None}], "c": fractions.Fraction(1, 2), "d": (b"e", -(10**30), True)}
    found = survey(io.BytesIO(pickle.dumps(content, protocol)), 1)
    assert "fractions.Fraction" in found.names
    assert found.protocol == max(protocol, 1)


@pytest.mark.parametrize("protocol", [4, 5])
def test_a_name_whose_strings_come_from_the_memo_is_found(protocol: int) -> None:
    """Python writes a string once and then refers to it; here both were already written as text."""
    text = [fractions.Fraction.__module__, fractions.Fraction.__qualname__, "other"]
    content = pickle.dumps([*text, fractions.Fraction(1, 2)], protocol)
    assert content.count(b"fractions") == 1
    assert names(content) == ["fractions.Fraction"]


@pytest.mark.parametrize(
    ("instructions", "name"),
    [
        (b"\x80\x04\x8c\x01a\x8c\x01b\x93.", "a.b"),
        (b"\x80\x04\x8c\x01a\x94\x8c\x01b\x94h\x00h\x01\x93.", "a.b"),
        (b"\x80\x04\x8c\x01aq\x05\x8c\x01br\x06\x00\x00\x00h\x05j\x06\x00\x00\x00\x93.", "a.b"),
        (b"\x80\x04\x8c\x01a\x8c\x01x0\x8c\x01b\x93.", "a.b"),  # POP
        (b"\x80\x04\x8c\x01a(K\x01K\x021\x8c\x01b\x93.", "a.b"),  # POP_MARK
        (b"\x80\x04\x8c\x01a2\x93.", "a.a"),  # DUP
        (b"\x80\x04\x8c\x01a(K\x01K\x02t0X\x01\x00\x00\x00b\x93.", "a.b"),  # TUPLE, POP
        (b"\x80\x04\x8d\x01\x00\x00\x00\x00\x00\x00\x00aV\x62\n\x93.", "a.b"),  # BINUNICODE8, UNICODE
        (b"ca\nb\n.", "a.b"),  # GLOBAL
        (b"(ia\nb\n.", "a.b"),  # INST
    ],
)
def test_a_name_is_found_however_it_is_put_together(instructions: bytes, name: str) -> None:
    """A malicious pickle need not look like one that Python wrote."""
    assert names(instructions) == [name]


def test_a_name_that_is_not_text_is_ignored() -> None:
    """No loader could look up such a name, so there is nothing to report."""
    assert names(b"\x80\x04K\x01K\x02\x93.") == []


def test_nothing_is_executed(tmp_path: Any) -> None:
    """The function that a pickled command would call is reported, not called."""
    content = pickle.dumps(Command(f"touch {tmp_path / 'executed'}"), 4)
    assert names(content) == ["posix.system"]
    assert not (tmp_path / "executed").exists()


def test_consecutive_pickles_are_all_read() -> None:
    """PyTorch's files from before 2020 have five pickles, followed by numbers."""
    rows = [pickle.dumps(1, 2), pickle.dumps(fractions.Fraction(1, 2), 2), b"numbers"]
    found = survey(io.BytesIO(b"".join(rows)), 2)
    assert "fractions.Fraction" in found.names
    assert found.protocol == 2


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x80", b"t.", b"h\x00.", b"0."])
def test_bytes_that_are_not_a_pickle_name_nothing(content: bytes) -> None:
    """The cases are no bytes, text, half an instruction, an empty stack and an empty memo."""
    assert survey(io.BytesIO(content), 5) == Survey([], None)


def test_names_before_the_damage_are_found() -> None:
    """A missing end does not make the beginning harmless."""
    content = pickle.dumps([fractions.Fraction(1, 2), "x" * 50], 4)
    assert survey(io.BytesIO(content[:-20]), 1) == Survey(["fractions.Fraction"], 4)
