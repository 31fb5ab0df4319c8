"""Attention of every decoder layer: the weights that the search itself used, layer by layer."""

from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.decode.word_translator import WordTranslator
from convs2s.package.layer_attention import read_layers
from convs2s.search.stepwise_model import StepwiseModel
from convs2s.text.vocabulary.codec import Codec
from tests.decode.parrot import TRANSLATE, WORDS, write_vocabulary
from tests.package.small_package import MODEL, make_model


def translator(vocabulary: Path, attention: list[bool]) -> WordTranslator:
    """Return a translator whose model has one decoder layer per flag and weights set by formula."""
    depth = len(attention)
    changes = {"attention": attention, "decoder_widths": [8] * depth, "decoder_kernels": [3] * depth}
    params = MODEL.model_validate({**MODEL.model_dump(), **changes})
    source, target = (Codec.load(vocabulary, side) for side in ("source", "target"))
    model = StepwiseModel(make_model(params, len(source.vocabulary), len(target.vocabulary)).eval())
    return WordTranslator(model, source, target, TRANSLATE, torch.device("cpu"))


@pytest.mark.parametrize("attention", [[True], [False, True, False, True]])
def test_the_average_is_what_the_search_attended_to(tmp_path: Path, attention: list[bool]) -> None:
    """The search is stepwise and keeps no layers."""
    small = translator(write_vocabulary(tmp_path), attention)
    for length in (1, 7, 25):
        words = (WORDS * 8)[:length]
        found = read_layers(small, words)
        searched = small.translate([words], keep_attention=True)[0][0].attention
        assert searched is not None
        assert (found.source, found.target) == (searched.source, searched.target)
        np.testing.assert_allclose(found.average, searched.weights, atol=1e-5)


def test_only_layers_that_attend_appear_under_their_own_numbers(tmp_path: Path) -> None:
    """Table 5 has models whose lower layers do not attend; counting the others from 1 would mislead."""
    small = translator(write_vocabulary(tmp_path), [False, True, False, True])
    found = read_layers(small, WORDS[:4])
    assert found.numbers == [2, 4]
    assert found.layers.shape == (2, len(found.target), 5)
    assert found.source == [*WORDS[:4], "</s>"]
    np.testing.assert_allclose(found.layers.sum(axis=2), 1.0, atol=1e-5)
    assert np.abs(found.layers[0] - found.layers[1]).max() > 0.01
