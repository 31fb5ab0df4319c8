"""The beam search of a translator: the host's or, where it is wanted, the device's if it finds the same.

`BeamSearch` is the search to read and to edit; `DeviceSearch` is a copy of it for GPUs. Before the copy is
used with some settings, both search a few made-up sentences with them. What is compared is the search alone:
its model has scores by formula, of which none are so nearly equal that rounding could change their order. A
trained model, whose products may be in bfloat16, can have other translations in a batch of another size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from convs2s.base.messages import is_out_of_memory
from convs2s.config.translate import TranslateParams
from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.device_search import DeviceSearch
from convs2s.decode.search import SearchResult
from convs2s.engine.agreement import TOLERANCE, warn_of_difference
from convs2s.ids.vocabulary import EOS, PAD

Kind = Literal["host", "device", "graphs"]
MOST_BEAMS = 12
"""Hypotheses of a sentence that are compared; more would take longer."""
ENTRIES = 41
CONTEXTS = 23
SOURCES = (
    (3, 4, 5, EOS),
    (6, EOS),
    (7, 8, 9, 10, 11, 12, 13, 14, 15, EOS),
    (EOS,),
    (5, 5, EOS),
    (9, 8, 7, EOS),
)
LIMITS = (30, 9, 21, 4, 0, 17)
"""Most tokens of each sentence's hypotheses: some end before, others there, at different steps."""
PREFIXES = ((), (7, 3), (), (), (), (20,))


@dataclass(frozen=True)
class Rows:
    """Rows as memory (source ids) or as state (a weighted sum of all tokens so far, and their number)."""

    numbers: Int64[Tensor, "R N"]

    def select(self, rows: Int64[Tensor, "M"]) -> "Rows":
        """Return these rows, in this order."""
        return Rows(self.numbers[rows])


class TableModel:
    """A model whose scores depend on the source, all tokens so far and their number."""

    max_source_tokens = max_target_tokens = None

    def __init__(self, device: torch.device) -> None:
        self.device = device
        n = torch.arange(CONTEXTS * ENTRIES, dtype=torch.float64)
        self.table = (3 * torch.sin(0.731 * n * n + n)).view(CONTEXTS, ENTRIES).float().to(device)

    def restrict(self, tokens: Int64[Tensor, "N"]) -> "TableModel":
        """Return the model; no search restricts it."""
        raise NotImplementedError

    def encode(self, source: Int64[Tensor, "B S"]) -> Rows:
        """Return the source."""
        return Rows(source)

    def start(self, rows: int) -> Rows:
        """Return the state before the first step."""
        return Rows(torch.zeros(rows, 2, dtype=torch.int64, device=self.device))

    def step(
        self, tokens: Int64[Tensor, "R"], memory: Rows, state: Rows
    ) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R S"], Rows]:
        """Advance hypotheses by a token; attention goes mostly to one position after the other."""
        sums = state.numbers[:, 0] + tokens * (1 + state.numbers[:, 1])
        following = torch.stack([sums, state.numbers[:, 1] + 1], dim=1)
        source = memory.numbers.repeat_interleave(len(tokens) // len(memory.numbers), dim=0)
        real = source != PAD
        places = torch.arange(source.shape[1], device=self.device)
        distances = (places - following[:, 1:] - sums[:, None]) % real.sum(dim=1, keepdim=True)
        weights = real / (1.0 + distances)
        logits = self.table[(sums + source.sum(dim=1)) % CONTEXTS]
        logits[:, EOS] += 0.3 * following[:, 1] - 0.6 * real.sum(dim=1)  # long sources have long translations
        return logits, weights / weights.sum(dim=1, keepdim=True), Rows(following)


def choose_search(params: TranslateParams, device: torch.device) -> Kind:
    """Return where to search: on the device, if that is wanted and finds what the host's search finds."""
    automatic: Kind = "device" if device.type == "cuda" else "host"
    wanted = automatic if params.search == "auto" else params.search
    fault = None if wanted == "host" else find_fault(params, device)
    if fault is None:
        return wanted
    warn_of_difference(
        "The search on the device",
        "convs2s/decode/device_search.py",
        "convs2s/decode/beam_search.py",
        fault,
        whole="the host's search",
        option="translate.search: host (--search host)",
    )
    return "host"


def find_fault(params: TranslateParams, device: torch.device) -> str | None:
    """Return how the device's search differs from the host's with some settings; None if only by rounding."""
    beam_size = min(params.beam_size, MOST_BEAMS)
    params = params.model_copy(update={"beam_size": beam_size, "n_best": beam_size})
    width = max(map(len, SOURCES))
    rows = [[*source, *[PAD] * (width - len(source))] for source in SOURCES]
    arguments = TableModel(device), torch.tensor(rows, device=device), LIMITS, PREFIXES
    expected = BeamSearch(params, keep_attention=True).search(*arguments)
    try:
        found = DeviceSearch(params, keep_attention=True).search(*arguments)
    except Exception as error:  # whatever an edit has led to
        if is_out_of_memory(error):
            raise
        return f"it ends in {type(error).__name__}: {error}"
    pairs = zip(expected, found, strict=True)
    return next(filter(None, (describe_hypotheses(*pair) for pair in pairs)), None)


def describe_hypotheses(expected: Sequence[SearchResult], found: Sequence[SearchResult]) -> str | None:
    """Return how the hypotheses of a sentence differ, None if only by rounding."""
    if [one.tokens for one in expected] != [one.tokens for one in found]:
        return "hypotheses differ"
    for one, other in zip(expected, found, strict=True):
        if (one.sources, one.at_end) != (other.sources, other.at_end):
            return "the positions attended to differ"
        for name in ("log_likelihood", "score"):
            values: tuple[float, float] = getattr(one, name), getattr(other, name)
            if abs(values[0] - values[1]) > TOLERANCE * max(1.0, abs(values[0])):
                return f"{name.replace('_', '-')}s differ: {values[0]:.5g} and {values[1]:.5g}"
        assert one.attention is not None
        assert other.attention is not None
        if not np.allclose(one.attention, other.attention, atol=TOLERANCE):
            return "attention weights differ"
    return None
