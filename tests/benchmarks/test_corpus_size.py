"""The benchmark of model sizes."""

import pytest

from benchmarks.corpus_size import Variant, change_params
from tests.presets import params_of


def test_a_variant_changes_sizes_and_nothing_else() -> None:
    """Sizes are depth and width on each side, number of pieces, and dropout."""
    params = params_of("multi30k-en-de")
    found = change_params(params, Variant(1000, "2 x 64, 1 x 32", 500, 0.4))
    assert (found.model.encoder_widths, found.model.decoder_widths) == ([64, 64], [32])
    assert (found.model.encoder_kernels, found.model.attention) == ([3, 3], [True])
    assert (found.vocabulary.source_size, found.train.dropout) == (500, 0.4)
    assert (found.download, found.filter) == (params.download, params.filter)
    with pytest.raises(ValueError, match="expected sizes such as"):
        change_params(params, Variant(1000, "4x256", 500, 0.4))
