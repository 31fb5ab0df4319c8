import pytest
import torch
from torch.testing import assert_close

from convs2s.model.description import receptive_field
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import ShapesOnly
from tests.model.small import PAD, SMALL, sentence, small_model, small_params


def test_no_output_depends_on_a_later_target_token() -> None:
    """The decoder is causal (T3): changing token i changes no bit of the outputs before it."""
    model = small_model().eval()
    source, target = sentence(7, 40)[None], sentence(9, 50)[None]
    logits, _ = model(source, target)
    for i in range(9):
        changed = target.clone()
        changed[0, i] = 30 if target[0, i] != 30 else 31
        other, _ = model(source, changed)
        assert torch.equal(other[0, :i], logits[0, :i])
        assert not torch.allclose(other[0, i], logits[0, i])


def test_a_sentence_does_not_depend_on_its_batch() -> None:
    """Masks and true lengths (T8): a short sentence has the same outputs next to a long one as alone."""
    model = small_model().eval()
    long, short = sentence(20, 40), sentence(4, 40, start=3)
    source = torch.full((2, 20), PAD)
    source[0], source[1, :4] = long, short
    target = torch.stack([sentence(6, 50), sentence(6, 50, start=5)])
    together, attention = model(source, target)
    alone, attention_alone = model(short[None], target[1:])
    assert_close(together[1], alone[0], atol=1e-5, rtol=1e-5)
    assert_close(attention[1, :, :4], attention_alone[0], atol=1e-6, rtol=1e-5)
    assert attention[1, :, 4:].abs().max() == 0


def test_without_positions_the_order_is_seen_only_through_the_kernels() -> None:
    """Width-1 kernels and no positions make a bag of words of the source (Table 4's switch works)."""
    model = small_model(source_positions=False, encoder_kernels=[1, 1, 1]).eval()
    source = sentence(7, 40)
    target = sentence(5, 50)[None]
    logits, _ = model(source[None], target)
    turned, _ = model(source.flip(0)[None], target)
    assert_close(logits, turned, atol=1e-5, rtol=1e-5)
    with_positions = small_model(encoder_kernels=[1, 1, 1]).eval()
    assert not torch.allclose(*(with_positions(s[None], target)[0] for s in (source, source.flip(0))))


@pytest.mark.parametrize(
    ("encoder", "decoder", "seen"),
    [([3] * 20, [3] * 20, (41, 41)), ([3] * 13, [5] * 5, (27, 21)), ([3] * 13 + [1, 1], [3] * 12, (27, 25))],
)
def test_receptive_fields_are_those_of_the_paper(
    encoder: list[int], decoder: list[int], seen: tuple[int, int]
) -> None:
    """13 x k3 sees 27 words, 5 x k5 sees 21 (T25), En-Fr's 12 x k3 sees 25."""
    assert (receptive_field(encoder), receptive_field(decoder)) == seen


WIDE = [512] * 10 + [768] * 3 + [2048] * 2
FRENCH = [512] * 5 + [768] * 4 + [1024] * 3 + [2048, 4096]


@pytest.mark.parametrize(
    ("widths", "kernels", "embedding", "entries", "millions"),
    [
        ([512] * 20, [3] * 20, 512, (40_000, 40_000), 137),
        ([512] * 20, [3] * 20, 512, (200_000, 80_000), 260),
        (WIDE, [3] * 13 + [1] * 2, 512, (42_243, 43_676), 159),
        (FRENCH, [3] * 12 + [1] * 2, 512, (43_881, 43_978), 230),
        ([256] * 6, [3] * 6, 256, (30_000, 30_000), 29),
    ],
    ids=["en-ro bpe", "en-ro word", "en-de", "en-fr", "summarization"],
)
def test_parameters_are_as_many_as_the_paper_s_shapes_have(
    widths: list[int], kernels: list[int], embedding: int, entries: tuple[int, int], millions: int
) -> None:
    """Counted from the sizes of §5.1 and §5.7, g included; to 3 %, since sizes are rounded."""
    sizes = SMALL | {
        "embedding_size": embedding,
        "output_embedding_size": embedding,
        "encoder_widths": widths,
        "decoder_widths": widths,
        "encoder_kernels": kernels,
        "decoder_kernels": kernels,
        "attention": [True] * len(widths),
        "max_positions": 1024,
    }
    with torch.device("meta"), ShapesOnly():
        model = Seq2Seq(small_params(**sizes), entries[0], entries[1], PAD, 0.1)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.03)
