"""Forced decoding: the likelihood that a model assigns to given translations."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from convs2s.base.messages import inflect
from convs2s.decode.batches import batches, pad
from convs2s.decode.finished import check_numbers
from convs2s.decode.parallel import run_in_processes
from convs2s.decode.search import SearchModel
from convs2s.decode.token_scores import all_logits, log_normalizer
from convs2s.decode.word_translator import WordTranslator
from convs2s.ids.vocabulary import EOS, PAD


@dataclass(frozen=True)
class GivenScore:
    """The likelihood of a given translation.

    Attributes:
        log_likelihood: in nats, including that of EOS; NaN if a side is longer than the position table.
        tokens: number of tokens in the translation, EOS included.
        score: log_likelihood / tokens^alpha, as a search would rank it.
    """

    log_likelihood: float
    tokens: int
    score: float


def score_given(
    translator: WordTranslator,
    sources: Sequence[Sequence[str]],
    targets: Sequence[Sequence[str]],
    on_done: Callable[[int], object] | None = None,
) -> list[GivenScore]:
    """Return the likelihood of each given translation, over the whole target vocabulary.

    Args:
        translator: its beam and its vocabulary selection are ignored.
        sources: words of each sentence, possibly none.
        targets: words of each translation; words not in the vocabulary count as <unk>.
        on_done: called with the number of sentences of each batch.

    Raises:
        ValueError: if the model's scores are not numbers.
        ChildProcessError: if one of the worker processes dies.
    """
    source_rows = [translator.source.encode(list(words)) for words in sources]
    target_rows = [translator.target.encode(list(words)) for words in targets]
    lengths = [(len(s), len(t)) for s, t in zip(source_rows, target_rows, strict=True)]
    most_source = translator.model.max_source_tokens or math.inf
    most_target = translator.model.max_target_tokens or math.inf
    fitting = [i for i, (s, t) in enumerate(lengths) if s <= most_source and t <= most_target]
    if too_long := len(lengths) - len(fitting):
        warnings.warn(
            f"{inflect(too_long, 'sentence pair')} longer than the model's position table: not scored (nan). "
            "Split them into sentences.",
            stacklevel=2,
        )
    totals = [math.nan] * len(lengths)
    pair_batches = [
        [fitting[place] for place in batch]
        for batch in batches([sum(lengths[i]) for i in fitting], translator.params.batch_sentences)
    ]

    def score_batch(batch: Sequence[int]) -> list[float]:
        source, target = pad([source_rows[i] for i in batch]), pad([target_rows[i] for i in batch])
        device = translator.device
        return log_likelihoods(translator.model, source.to(device), target.to(device)).tolist()

    for number, batch_totals in run_in_processes(score_batch, pair_batches, translator.processes):
        for i, total in zip(pair_batches[number], batch_totals, strict=True):
            totals[i] = total
        if on_done is not None:
            on_done(len(batch_totals))
    alpha = translator.params.alpha
    return [
        GivenScore(total, tokens, total / tokens**alpha)
        for total, (_, tokens) in zip(totals, lengths, strict=True)
    ]


@torch.inference_mode()
def log_likelihoods(
    model: SearchModel, source: Int64[Tensor, "B S"], target: Int64[Tensor, "B T"]
) -> Float[Tensor, "B"]:
    """Return the log-likelihood of each target sentence, in nats; all rows end with EOS, then padding."""
    memory, state = model.encode(source), model.start(len(source))
    newest = torch.full_like(target[:, 0], EOS)
    totals = torch.zeros(len(target), device=target.device)
    for tokens in target.unbind(dim=1):
        scores, _, state = model.step(newest, memory, state)
        logits = all_logits(scores)
        gains = logits.gather(1, tokens[:, None]).squeeze(1) - log_normalizer(logits)
        totals += gains.masked_fill(tokens == PAD, 0.0)
        newest = tokens
    check_numbers(totals.cpu().numpy()[:, None], np.arange(len(target)), target.shape[1] - 1)
    return totals
