import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from convs2s.model.seq2seq import Seq2Seq
from tests.model.small import sentence, small_model


def gradients(model: Seq2Seq) -> dict[str, Tensor]:
    model.double().zero_grad()
    logits, _ = model(sentence(7, 40)[None], sentence(5, 50)[None])
    logits.square().sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("rule", ["paper", "fairseq"])
def test_encoder_weights_get_exactly_one_over_2a_of_their_gradient(rule: str) -> None:
    """A = 2 layers attend, each feeds back twice: encoder weights get 1/4, the decoder's all (T6).

    The paper excludes source embeddings; fairseq's scale reaches their path through the encoder.
    """
    model = small_model(encoder_grad_scale=rule)
    scaled = gradients(model)
    model.encoder.gradient_scale = 1.0
    plain = gradients(model)
    for name, gradient in plain.items():
        share = 0.25 if name.startswith("encoder.") else 1.0
        if rule == "fairseq" and name.startswith("source_embedding."):
            assert not torch.allclose(scaled[name], gradient, rtol=1e-3)
        else:
            assert_close(scaled[name], share * gradient, rtol=1e-9, atol=1e-12)
