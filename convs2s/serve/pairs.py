"""The models that a server offers, by language pair."""

import copy
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from fastapi import HTTPException
from torch import Tensor

from convs2s.html.draft import Traced
from convs2s.package.folder import read_settings
from convs2s.package.html_page import HtmlPage, read_html, trace
from convs2s.package.layer_attention import LayerAttention, read_layers
from convs2s.package.translator import Translation, Translator, load
from convs2s.search.search import SearchModel
from convs2s.serve.turns import Pause
from convs2s.text.words.tokenization import Tokenizer


class InterruptibleModel(SearchModel):
    """A model that pauses before it encodes and before each step, so that others may be translated then."""

    def __init__(self, model: SearchModel, pause: Pause) -> None:
        self._model = model
        self._pause = pause

    @property
    def max_source_tokens(self) -> int | None:
        """The model's."""
        return self._model.max_source_tokens

    @property
    def max_target_tokens(self) -> int | None:
        """The model's."""
        return self._model.max_target_tokens

    @property
    def seq2seq(self) -> Any:
        """The network; None of an ensemble."""
        return getattr(self._model, "seq2seq", None)

    def restrict(self, tokens: Tensor) -> "InterruptibleModel":
        """Return the same over some target tokens."""
        return InterruptibleModel(self._model.restrict(tokens), self._pause)

    def encode(self, source: Tensor) -> Any:
        """Pause, and encode as the model does."""
        self._pause()
        return self._model.encode(source)

    def start(self, rows: int) -> Any:
        """Return the model's state before the first step."""
        return self._model.start(rows)

    def step(self, tokens: Tensor, memory: Any, state: Any) -> tuple[Any, Tensor, Any]:
        """Pause, and make the model's step."""
        self._pause()
        return self._model.step(tokens, memory, state)


class InterruptibleTokenizer:
    """A tokenizer that pauses before each text, so that others may be translated then."""

    def __init__(self, tokenizer: Tokenizer, pause: Pause) -> None:
        self._tokenizer = tokenizer
        self._pause = pause

    def __getattr__(self, name: str) -> Any:
        if name in ("tokenize", "detokenize"):
            self._pause()
        return getattr(self._tokenizer, name)


@dataclass(frozen=True, eq=False)
class LanguagePair:
    """A language pair with its model, or its ensemble.

    Attributes:
        source, target: language codes.
        translator: returns all hypotheses of the beam.
        members: number of models.
    """

    source: str
    target: str
    translator: Translator
    members: int

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    def split(self, line: str) -> list[str]:
        """Return a line's sentences, or the whole line if the model takes it so; none of an empty one."""
        if not line.strip():
            return []
        return self.translator.split(line) if self.translator.splits_sentences else [line]

    @cached_property
    def best(self) -> Translator:
        """The same translator, which returns the best hypothesis only."""
        best = copy.copy(self.translator)
        best.words = copy.copy(best.words)
        best.words.params = best.words.params.model_copy(update={"n_best": 1})
        return best

    @property
    def part_lines(self) -> int | None:
        """Number of lines that a long request translates at once; None if that would change translations."""
        words = self.translator.words
        depends_on_batch = words.params.max_length_of == "batch" or words.selection is not None
        return None if depends_on_batch else words.batch_sentences

    def translate(self, sentences: Sequence[str], pause: Pause) -> list[list[Translation]]:
        """Return each sentence's hypotheses, best first."""
        return interruptible(self.translator, pause).translate_n_best(sentences)

    def translate_best(self, sentences: Sequence[str], pause: Pause) -> list[list[Translation]]:
        """Return each sentence's best hypothesis, in a list."""
        return interruptible(self.best, pause).translate_n_best(sentences)

    def read_html(self, page: str) -> HtmlPage:
        """Return a page, whose sentences `trace` translates."""
        return read_html(self.translator, page)

    def trace(self, sentences: Sequence[str], pause: Pause) -> list[list[Traced]]:
        """Return each sentence's hypotheses, best first, with the origins of their words."""
        return self._trace(sentences, self.translate(sentences, pause), pause)

    def trace_best(self, sentences: Sequence[str], pause: Pause) -> list[list[Traced]]:
        """Return each sentence's best hypothesis, in a list, with the origins of its words."""
        return self._trace(sentences, self.translate_best(sentences, pause), pause)

    def _trace(
        self, sentences: Sequence[str], n_best_lists: Sequence[Sequence[Translation]], pause: Pause
    ) -> list[list[Traced]]:
        """Return translations with the origins of their words."""
        traced = []
        for sentence, ranked in zip(sentences, n_best_lists, strict=True):
            pause()
            traced.append([trace(self.translator, sentence, translation) for translation in ranked])
        return traced

    def attend(self, lines: Sequence[str], pause: Pause) -> list[LayerAttention]:
        """Return each decoder layer's attention while each line is translated; for single models only."""
        words = interruptible(self.best, pause).words
        return [read_layers(words, source.seen) for source in self.translator.read(lines)]


def interruptible(translator: Translator, pause: Pause) -> Translator:
    """Return a translator that pauses before each text that it reads or writes, and each step of a search.

    What a search has found so far are values that no other search changes.
    """
    copied: Any = copy.copy(translator)
    copied.source = InterruptibleTokenizer(translator.source, pause)
    copied.target = InterruptibleTokenizer(translator.target, pause)
    copied.words = copy.copy(translator.words)
    copied.words.model = InterruptibleModel(translator.words.model, pause)
    return cast(Translator, copied)


def find_pair(pairs: Sequence[LanguagePair], source: str, target: str) -> LanguagePair:
    """Return a pair; source `auto` is the only language that can be translated to the target."""
    languages = {language for pair in pairs for language in (pair.source, pair.target)}
    for language in (source, target):
        if language not in languages | {"auto"}:
            raise HTTPException(400, f"{language} is not supported")  # LibreTranslate's words
    fitting = [pair for pair in pairs if pair.target == target and source in (pair.source, "auto")]
    if len(fitting) != 1:
        raise HTTPException(
            400,
            f"{source}-{target} is not available; this server translates {', '.join(map(str, pairs))}. "
            "Source auto is possible only if one language has this target, as languages are not detected.",
        )
    return fitting[0]


def load_pairs(
    folders: Sequence[Path],
    device: str | None,
    *,
    beam_size: int | None = None,
    replace: bool | None = None,
    split_sentences: bool | None = None,
    keep_literals: bool | None = None,
    capitals: bool | None = None,
) -> list[LanguagePair]:
    """Load model folders, an ensemble if several have the same language pair; errors as `load`.

    None leaves a setting as packaged, or as `load` chooses it.
    """
    by_pair: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder in folders:
        by_pair[read_settings(folder).languages].append(folder)
    pairs = []
    for (source, target), paths in by_pair.items():
        packaged = read_settings(paths[0]).translate
        size = packaged.beam_size if beam_size is None else beam_size
        translator = load(
            paths,
            device,
            replace=replace,
            keep_literals=keep_literals,
            capitals=capitals,
            beam_size=size,
            n_best=size,
            split_sentences=packaged.split_sentences if split_sentences is None else split_sentences,
        )
        pairs.append(LanguagePair(source, target, translator, len(paths)))
    return pairs
