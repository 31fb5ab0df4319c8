"""Names of splits."""

import pytest

from convs2s.text.sources.part import SPLITS, split_named


def test_splits_are_known_by_name() -> None:
    """Those of params.yaml."""
    assert [split_named(name) for name in ("train", "valid", "development", "test")] == list(SPLITS)


def test_unknown_split_is_an_error() -> None:
    """A typo on the command line should not end in a KeyError."""
    with pytest.raises(ValueError, match="split: found 'dev', wanted one of train, valid, development, test"):
        split_named("dev")
