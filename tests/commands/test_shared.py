"""Long-lived objects are exempt from garbage collection, which otherwise goes on as before."""

import gc

import pytest

from convs2s.commands.shared import pause_garbage_collection


@pytest.mark.parametrize("enabled", [True, False])
def test_long_lived_objects_are_frozen_and_collection_goes_on_as_before(enabled: bool) -> None:
    """This must hold after an error, too: a program may catch a model's loading error and go on."""
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        frozen = gc.get_freeze_count()
        with pytest.raises(ValueError, match="no model"), pause_garbage_collection():
            assert not gc.isenabled()
            raise ValueError("no model")
        assert gc.isenabled() == enabled
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()
        gc.enable() if before else gc.disable()
