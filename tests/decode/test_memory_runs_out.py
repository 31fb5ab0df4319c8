"""Where a GPU's memory runs out, fewer sentences are searched at a time, and translations stay the same."""

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.decode.batches import FittingSentences
from convs2s.decode.sampling import Sampling
from convs2s.decode.word_translator import WordTranslator
from convs2s.ids.candidates import Candidates
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import PAD
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search.search import SearchModel
from convs2s.search.stepwise_model import StepwiseModel
from tests.decode.parrot import word_parrot, write_vocabulary
from tests.model.small import small_params

SENTENCES = [
    ["Das", "ist", "ein", "Haus"],
    ["noch", "ein", "Hund"],
    [],
    ["und", "eins"],
    ["ein", "Hund", "und", "noch", "ein", "Haus", "."],
    ["Haus"],
]
NO_MEMORY = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
NUMBERS = 5
"""Of the sentences that have words."""


class SmallMemory:
    """A model whose steps fail for more rows than `most`.

    Attributes:
        batches: numbers of sentences that were encoded.
        failed: memory of the step that failed last.
    """

    def __init__(self, model: SearchModel, most: int, error: RuntimeError) -> None:
        self.model, self.most, self.error = model, most, error
        self.batches = list[int]()
        self.failed: weakref.ref[Tensor] | None = None
        self.max_source_tokens, self.max_target_tokens = model.max_source_tokens, model.max_target_tokens

    def restrict(self, tokens: Tensor) -> SearchModel:
        narrow = SmallMemory(self.model.restrict(tokens), self.most, self.error)
        narrow.batches = self.batches
        return narrow

    def encode(self, source: Tensor) -> Any:
        assert self.failed is None or self.failed() is None, "what failed still takes memory"
        self.batches.append(len(source))
        return self.model.encode(source)

    def start(self, rows: int) -> Any:
        return self.model.start(rows)

    def step(self, tokens: Tensor, memory: Any, state: Any) -> Any:
        if len(tokens) > self.most:
            self.failed = weakref.ref(memory.keys)
            raise type(self.error)(*self.error.args)
        return self.model.step(tokens, memory, state)


def translator_of(folder: Path, **changes: Any) -> WordTranslator:
    """Return a translator with a small model, whose weights are random."""
    parrot = word_parrot(write_vocabulary(folder / "vocabulary"), batch_sentences=NUMBERS, **changes)
    size = len(parrot.target.vocabulary)
    model = StepwiseModel(Seq2Seq(small_params(), size, size, PAD, 0.0).eval().requires_grad_(False))
    return WordTranslator(model, parrot.source, parrot.target, parrot.params, parrot.device)


def with_small_memory(translator: WordTranslator, most: int, error: RuntimeError = NO_MEMORY) -> SmallMemory:
    """Make a translator's model one that holds so many rows, and return it."""
    translator.model = SmallMemory(translator.model, most, error)
    return translator.model


def select_few(translator: WordTranslator) -> VocabularySelection:
    """Return a selection of the words in a batch, one other, and the special tokens."""
    size = len(translator.target.vocabulary)
    own = Candidates(np.maximum(np.arange(size + 1) - 3, 0), np.arange(3, size, dtype=np.int32))
    return VocabularySelection(own, 1, 1, size)


@pytest.mark.parametrize(
    "changes",
    [{}, {"max_length_of": "batch", "max_length_extra": 1.0, "min_length": 6}, {"beam_size": 1, "n_best": 1}],
    ids=["plain", "batch", "one"],
)
@pytest.mark.parametrize("way", ["search", "selected", "sampled", "prefixes"])
def test_translations_are_the_same_in_smaller_parts(
    tmp_path: Path, changes: dict[str, Any], way: str
) -> None:
    """Also what depends on the whole batch: limits of length, selected tokens; and the samples drawn."""
    settings: dict[str, Any] = {"beam_size": 2, "n_best": 2, **changes}
    arguments: dict[str, Any] = {}
    if way == "sampled":
        arguments = {"sampling": Sampling(seed=3, temperature=20.0)}
    if way == "prefixes":
        arguments = {"prefixes": [["Haus"], [], [], ["ein", "Hund"], [], ["noch"]]}
    translator = translator_of(tmp_path, **settings)
    if way == "selected":
        translator.selection = select_few(translator)
    expected = translator.translate_into(lambda _, ranked: ranked, SENTENCES, False, **arguments)
    model = with_small_memory(translator, 2 * settings["beam_size"])
    done = list[int]()
    with pytest.warns(UserWarning, match="memory of cpu does not hold"):
        found = translator.translate_into(
            lambda _, ranked: ranked, SENTENCES, False, on_done=done.append, **arguments
        )
    for found_ranked, expected_ranked in zip(found, expected, strict=True):
        assert [one.tokens for one in found_ranked] == [one.tokens for one in expected_ranked]
        likelihoods = [one.log_likelihood for one in expected_ranked]
        assert [one.log_likelihood for one in found_ranked] == pytest.approx(likelihoods, abs=1e-4)
    assert sum(done) == len(SENTENCES)
    assert model.batches == [5, 2, 2, 1]


@pytest.mark.parametrize(
    "error",
    [
        NO_MEMORY,
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
    ids=["PyTorch", "cuBLAS", "cuDNN"],
)
def test_it_is_said_once_and_remembered(tmp_path: Path, error: RuntimeError) -> None:
    """Each attempt that fails takes time. The libraries that PyTorch calls take memory of their own."""
    translator = translator_of(tmp_path, beam_size=1, n_best=1)
    model = with_small_memory(translator, 1, error)
    with pytest.warns(UserWarning) as caught:
        translator.translate(SENTENCES * 2, False)
        translator.translate(SENTENCES, False)
    [warning] = caught
    assert "cpu does not hold the search of 5 sentences." in str(warning.message)
    assert model.batches == [5, 2, *[1] * 15]


def test_a_sentence_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    """With PyTorch's message, which the commands shorten to what to do."""
    translator = translator_of(tmp_path)
    model = with_small_memory(translator, 0)
    with (
        pytest.warns(UserWarning, match="memory of cpu does not hold"),
        pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"),
    ):
        translator.translate(SENTENCES, False)
    assert model.batches == [5, 2, 1]


def test_other_errors_pass() -> None:
    """A smaller part would only fail later."""
    calls = list[slice]()

    def fail(part: slice) -> list[int]:
        calls.append(part)
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal memory access"):
        FittingSentences().search(fail, 8, torch.device("cuda"))
    assert calls == [slice(0, 8)]
