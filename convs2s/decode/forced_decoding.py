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
    rows = [translator.source.encode(list(words)) for words in sources]
    given = [translator.target.encode(list(words)) for words in targets]
    limits = translator.model.max_source_tokens, translator.model.max_target_tokens
    most_source, most_target = (math.inf if limit is None else limit for limit in limits)
    pairs = enumerate(zip(rows, given, strict=True))
    fitting = [i for i, (row, other) in pairs if len(row) <= most_source and len(other) <= most_target]
    if long := len(rows) - len(fitting):
        warnings.warn(
            f"{inflect(long, 'sentence pair')} longer than the model's position table: not scored (nan). "
            "Split them into sentences.",
            stacklevel=2,
        )
    totals = [math.nan] * len(rows)
    lengths = [len(rows[i]) + len(given[i]) for i in fitting]
    several = list(batches(lengths, translator.params.batch_sentences))

    def score_batch(batch: Sequence[int]) -> list[float]:
        chosen, device = [fitting[place] for place in batch], translator.device
        source, target = pad([rows[i] for i in chosen]), pad([given[i] for i in chosen])
        found = log_likelihoods(translator.model, source.to(device), target.to(device))
        return [float(total) for total in found]

    for done, found in run_in_processes(score_batch, several, translator.processes):
        for place, total in zip(several[done], found, strict=True):
            totals[fitting[place]] = total
        if on_done is not None:
            on_done(len(found))
    alpha = translator.params.alpha
    return [
        GivenScore(total, len(tokens), total / len(tokens) ** alpha)
        for total, tokens in zip(totals, given, strict=True)
    ]


@torch.inference_mode()
def log_likelihoods(
    model: SearchModel, source: Int64[Tensor, "B S"], target: Int64[Tensor, "B T"]
) -> Float[Tensor, "B"]:
    """Return the log-likelihood of each target sentence, in nats.

    Args:
        model: a model or an ensemble.
        source: each row ends with EOS, followed by padding.
        target: likewise.

    Raises:
        ValueError: if the model's scores are not numbers.
    """
    memory, state = model.encode(source), model.start(len(source))
    newest = torch.full_like(target[:, 0], EOS)
    totals = torch.zeros(len(target), device=target.device)
    for given in target.unbind(dim=1):
        scores, _, state = model.step(newest, memory, state)
        logits = all_logits(scores)
        gains = logits.gather(1, given[:, None]).squeeze(1) - log_normalizer(logits)
        totals += gains.masked_fill(given == PAD, 0.0)
        newest = given
    check_numbers(totals.cpu().numpy()[:, None], np.arange(len(target)), target.shape[1] - 1)
    return totals
