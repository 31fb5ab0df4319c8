"""A model that repeats its source, for testing the code around it with exact values."""

from collections import Counter
from pathlib import Path

import torch
from torch import Tensor

from convs2s.config.translate import PackagedTranslateParams, SearchPlace, TranslateParams
from convs2s.decode.word_translator import WordTranslator
from convs2s.ids.vocabulary import EOS
from convs2s.model.multistep_attention import Memory
from convs2s.search.beam_search import BeamSearch
from convs2s.search.stepwise_model import StepwiseModel
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.learning import write_codecs
from tests.presets import params_of
from tests.search.table_model import Held

PRESET = params_of("tatoeba-en-de")
TOKENIZE = PRESET.tokenize
TRANSLATE = TranslateParams.model_validate(
    {
        **PRESET.translate.model_dump(),
        "beam_size": 2,
        "min_length": 0,
        "max_length_ratio": 1.0,
        "max_length_extra": 5.0,
        "batch_sentences": 3,
        "precision": "float32",
    }
)
"""A short search in small batches: limits and batches are those that tests of long sentences count on."""
PACKAGED = PackagedTranslateParams(**TRANSLATE.model_dump())
WORDS = ["Das", "ist", "ein", "Haus", ".", ",", "und", "noch", "eins", "Hund"]


def make_search(
    beam_size: int, *, keep_attention: bool = False, place: SearchPlace = "auto", **changes: object
) -> BeamSearch:
    """Return a search for all hypotheses of the beam."""
    changes = {"beam_size": beam_size, "n_best": beam_size, **changes}
    return BeamSearch(TRANSLATE.model_copy(update=changes), keep_attention, place)


class Parrot(StepwiseModel):
    """Writes source token t as target token t with probability near 1, attending to position t.

    At the second token it attends mostly to the source's EOS, then to its own position.
    """

    def __init__(self, vocabulary: int, max_source_tokens: int | None = None) -> None:
        self.vocabulary = vocabulary
        self.max_source_tokens = self.max_target_tokens = max_source_tokens
        self.batches: list[tuple[int, int]] = []

    def encode(self, source: Tensor) -> Memory:
        self.batches.append((source.shape[0], source.shape[1]))
        values = source[:, :, None].float()
        return Memory(values, values, None, (source != 0).sum(dim=1))

    def start(self, rows: int) -> Held:  # type: ignore[override]
        return Held(torch.zeros(rows, 0, dtype=torch.int64))

    def step(self, tokens: Tensor, memory: Memory, state: Held) -> tuple[Tensor, Tensor, Held]:  # type: ignore[override]
        source = memory.keys[:, :, 0].long().repeat_interleave(len(tokens) // len(memory.keys), dim=0)
        position = min(state.rows.shape[1], source.shape[1] - 1)
        wanted = source[:, position].clamp(min=EOS)
        logits = torch.zeros(len(tokens), self.vocabulary).scatter_(1, wanted[:, None], 20.0)
        lengths = memory.lengths.repeat_interleave(len(tokens) // len(memory.keys))
        rows = torch.arange(len(tokens))
        attention = torch.zeros(source.shape)
        attention[rows, lengths - 1] += 0.6 if position == 1 else 0.1
        attention[rows, torch.minimum(torch.tensor(position), lengths - 1)] += 0.4
        return logits, attention, Held(torch.cat([state.rows, tokens[:, None]], dim=1))


def write_vocabulary(folder: Path, words: list[str] = WORDS, pieces: int = 0) -> Path:
    """Write one vocabulary for both sides: the words, or so many pieces of them."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = Counter(words)
    size = pieces or len(set(words))
    write_codecs(folder, (counts, counts), "bpe" if pieces else "word", joint=pieces > 0, sizes=(size, size))
    return folder


def word_parrot(vocabulary: Path, limit: int | None = None, **changes: object) -> WordTranslator:
    """Return a translator that repeats words of the vocabulary; others become unknown."""
    source, target = Codec.load(vocabulary, "source"), Codec.load(vocabulary, "target")
    params = TRANSLATE.model_validate({**TRANSLATE.model_dump(), **changes})
    model = Parrot(len(target.vocabulary), limit)
    return WordTranslator(model, source, target, params, torch.device("cpu"))
