"""What lasts is left out of garbage collection, and collection goes on as it was."""

import gc

import pytest

from convs2s.commands.garbage import lasting


@pytest.mark.parametrize("enabled", [True, False])
def test_what_lasts_is_left_alone_and_collection_goes_on_as_before(enabled: bool) -> None:
    """Also after an error, since programs catch those of loading a model."""
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        frozen = gc.get_freeze_count()
        with pytest.raises(ValueError, match="no model"), lasting():
            assert not gc.isenabled()
            raise ValueError("no model")
        assert gc.isenabled() == enabled
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()
        gc.enable() if before else gc.disable()
