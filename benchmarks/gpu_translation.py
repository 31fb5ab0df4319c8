"""Table 3's protocol with random weights (§5.3): a part of the GPU report.

A model with random weights never ends a sentence by itself. Here it cannot, and each translation gets as many
tokens as a real one would. The lengths are assumed because the text is not available: the French reference of
newstest2014 has 27 words per sentence; with 1.1 pieces per word and EOS, that makes 30 tokens, from 26.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.gpu_parts import Sizes, device
from benchmarks.limited import Emit
from benchmarks.machine import timed
from benchmarks.table3 import equal_lengths
from benchmarks.train_step import narrowed
from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.ensemble import SearchModel
from convs2s.decode.load_words import choose_model
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.seq2seq import Seq2Seq
from convs2s.text.vocabulary.vocabulary import EOS, PAD
from pipelines.preset import preset_params

SOURCE, TARGET = 26, 30
"""Mean tokens per sentence, including EOS."""
LONGEST = 120
PRESET = "wmt14-en-fr-paper"
BATCH = 128


def translations(sizes: Sizes, emit: Emit, _: float) -> None:
    """Emit the speed of a search over all sentences, by precision and beam."""
    lengths = source_lengths(sizes.sentences)
    batches = [lengths[batch] for batch in equal_lengths(lengths.tolist(), BATCH)]
    for precision in sizes.precisions:
        model = random_model(PRESET, sizes.entries, sizes.channels, precision, device())
        entries = sizes.entries or preset_params(PRESET).vocabulary.source_size
        sources = [source(batch, entries) for batch in batches]
        for beam_size in (1, 5):
            search = BeamSearch(beam_size, 1.0, 1, 1, False, False)
            translate(search, model, sources[-1:])
            speed = timed(partial(translate, search, model, sources), device())
            tokens = sum(len(one) * target_length(one.shape[1]) for one in sources)
            seconds = tokens / speed.clock
            emit({
                "precision": precision, "beam": beam_size, "sentences": len(lengths), "seconds": seconds,
                "sentences/s": len(lengths) / seconds, "tokens/s": speed.clock,
            })  # fmt: skip


def source_lengths(sentences: int) -> NDArray[np.int64]:
    """Return a length per sentence, including EOS: always the same ones, distributed as in news text."""
    drawn = np.random.default_rng(1).gamma(3.0, SOURCE / 3.0, sentences)
    return np.clip(np.round(drawn), 2, LONGEST).astype(np.int64)


def target_length(source_tokens: int) -> int:
    """Return the tokens of a translation, EOS included."""
    return max(2, round(source_tokens * TARGET / SOURCE))


def random_model(
    preset: str, entries: int | None, channels: int | None, precision: str, place: torch.device
) -> SearchModel:
    """Return a model that never writes EOS unless forced to.

    Args:
        preset: whose architecture it has.
        entries: of both vocabularies; None: the preset's.
        channels: of all layers; None: the preset's.
        precision: of products.
        place: the model's device.
    """
    params = preset_params(preset)
    size = entries or params.vocabulary.source_size
    torch.manual_seed(1)
    model = Seq2Seq(narrowed(params.model, channels), size, size, PAD, 0.0)
    fold_weight_norm(model)
    model.output_layer.bias.data[EOS] = -1e4
    return choose_model(model.to(place).eval().requires_grad_(False), precision, place)


def source(lengths: NDArray[np.int64], entries: int) -> torch.Tensor:
    """Return sentences of equal length, of random tokens."""
    ids = np.random.default_rng(1).integers(3, entries, (len(lengths), int(lengths[0])))
    ids[:, -1] = EOS
    return torch.from_numpy(ids)


def translate(search: BeamSearch, model: SearchModel, sources: Sequence[torch.Tensor]) -> float:
    """Translate batches; return the tokens of all best hypotheses."""
    tokens = 0
    for ids in sources:
        limits = [target_length(ids.shape[1]) - 1] * len(ids)
        tokens += sum(len(best.tokens) for best, *_ in search.search(model, ids.to(device()), limits))
    return float(tokens)
