"""The pictures of docs/how-it-works.md show what the model does."""

from pathlib import Path

import numpy as np

from convs2s.model.receptive_field import receptive_field
from pipelines.reference.pictures import GATES, fields, gate_maps, main
from tests.model.small import SMALL, small_model
from tests.package.small_package import write_small_package


def test_a_layer_sees_as_far_as_its_receptive_field() -> None:
    """Gradients show it: the encoder sees both sides, the decoder only the past (§3.2)."""
    encoder, decoder = fields(small_model().eval(), 25)
    for maps, kernels in ((encoder, SMALL["encoder_kernels"]), (decoder, SMALL["decoder_kernels"])):
        assert [int((row > 0).sum()) for row in maps] == [receptive_field(kernels[:n]) for n in (1, 2, 3)]
    assert np.array_equal(encoder > 0, (encoder > 0)[:, ::-1])
    assert not (decoder[:, 13:] > 0).any()


def test_the_maps_of_the_block_are_its_parts() -> None:
    """The output is (A · σ(B) + x) * sqrt(0.5); gates are between 0 and 1 (§3.2)."""
    maps = gate_maps(small_model().eval(), [4, 5, 6, 7])
    assert maps[GATES].shape[1] == 4
    assert 0 < maps[GATES].min() < maps[GATES].max() < 1
    np.testing.assert_allclose(maps["A · σ(B)"], maps["values A"] * maps[GATES], rtol=1e-6)
    wanted = (maps["A · σ(B)"] + maps["input x"]) * 0.5**0.5
    np.testing.assert_allclose(maps["output"], wanted, rtol=1e-5, atol=1e-6)


def test_all_pictures_are_drawn(tmp_path: Path) -> None:
    """A model folder and a sentence must be enough."""
    package = write_small_package(tmp_path)
    main(["Das ist ein Haus .", "--model", str(package), "--out", str(tmp_path)])
    names = {path.name for path in tmp_path.glob("*.png")}
    assert names == {"glu-block.png", "receptive-field.png", "multistep-attention.png"}
