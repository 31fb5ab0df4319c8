"""Attention on disk."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.decode.translations import Attention, read_attention, write_attention


def attention() -> list[Attention]:
    return [
        Attention(
            np.array([[0.25, 0.75], [0.5, 0.5], [1, 0]], np.float32), ["ü▁", "</s>"], ["a", "\n", "</s>"]
        ),
        Attention(np.zeros((0, 0), np.float32), [], []),
        Attention(np.array([[1]], np.float32), ["</s>"], ["</s>"]),
    ]


def test_attention_round_trips(tmp_path: Path) -> None:
    """These weights are exact in float16."""
    write_attention(tmp_path / "attention.npz", attention())
    back = read_attention(tmp_path / "attention.npz")
    for before, after in zip(attention(), back, strict=True):
        np.testing.assert_array_equal(before.weights, after.weights)
        assert (before.source, before.target) == (after.source, after.target)
        assert after.weights.dtype == np.float16


def test_no_attention_is_not_an_error(tmp_path: Path) -> None:
    """A test set without sentences has none."""
    write_attention(tmp_path / "attention.npz", [])
    assert read_attention(tmp_path / "attention.npz") == []


def test_attention_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    """DVC hashes the archive, so it must not contain a date."""
    for name in ("a.npz", "b.npz"):
        write_attention(tmp_path / name, attention())
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert b"\x00\x00\x21\x00" in (tmp_path / "a.npz").read_bytes()  # 0:00 on 1 January 1980


def test_attention_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """The file is missing, or damaged in one of several ways."""
    path = tmp_path / "attention.npz"
    with pytest.raises(FileNotFoundError, match=r"attention.npz does not exist. The stage translate writes"):
        read_attention(path)
    write_attention(path, attention())
    whole = path.read_bytes()
    np.savez(tmp_path / "other.npz", numbers=np.zeros(3))
    for content in (b"", b"no archive", whole[: len(whole) // 2], (tmp_path / "other.npz").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"attention.npz is damaged or not an attention file .* run that stage again"
        ):
            read_attention(path)
