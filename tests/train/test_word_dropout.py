from pathlib import Path

import torch

from convs2s.text.vocabulary.vocabulary import EOS, PAD, UNK
from convs2s.train.word_dropout import drop_words
from tests.train.tiny import tiny_training


def test_tokens_are_replaced_but_not_padding_or_ends() -> None:
    """Each with the given probability."""
    torch.manual_seed(1)
    tokens = torch.tensor([[EOS, 5, 6, PAD]]).repeat(1000, 1)
    dropped = drop_words(tokens, 0.3)
    assert torch.equal(dropped[:, [0, 3]], tokens[:, [0, 3]])
    assert set(dropped[:, 1].tolist()) == {5, UNK}
    assert 0.25 < float((dropped[:, 1:3] == UNK).float().mean()) < 0.35


def test_it_changes_the_input_in_training_only(tmp_path: Path) -> None:
    """Validation and what is to be predicted stay whole."""
    run = tiny_training(tmp_path, dropout=0.0, word_dropout=0.5)
    inputs, losses = run.inputs(run.train, range(9)), run.training_losses()
    plain = run.losses(run.smoothing)(*inputs, None)[0]
    assert float(losses.train()(*inputs, None)[0]) != float(plain)
    assert float(losses.eval()(*inputs, None)[0]) == float(plain)
