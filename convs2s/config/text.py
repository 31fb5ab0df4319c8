"""Sections filter, augment, vocabulary, align, candidates: from raw text to ids and alignment candidates."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.download import WORD
from convs2s.config.section import COUNTABLE, NOTHING, Count, Positive, Section

AugmentModels = Annotated[str, "augment.models"]
AugmentText = Annotated[str, "augment.text"]
"""Keys that the stage augment takes, which uses no other of its section; the stage filter uses them."""


class FilterParams(Section):
    """Which training pairs are kept; null turns a limit off."""

    max_words: Positive | None
    """Most words on either side (175 in §4.1)."""
    max_ratio: Annotated[float, Field(ge=1)] | None
    """Largest ratio of the longer side to the shorter (1.5 in §4.1)."""
    ratio_of: Literal["words", "characters"]
    """Unit of `max_ratio`: `words`, as in the paper, or `characters`, relative to the ratio over the whole
    corpus, for languages written without spaces or with fewer, longer words than the other side."""
    drop_empty: bool
    """Drop pairs with an empty side."""
    drop_repeats: bool
    """Keep only the first of identical pairs; the paper keeps them all (T29)."""
    max_overlap: Annotated[float, Field(ge=0, le=1)] | None
    """Largest share of the validation, development or test pairs that may also be training pairs; with more,
    the stage stops."""
    valid_every: Annotated[int, Field(ge=2, le=COUNTABLE)] | None
    """Every Nth kept pair goes to validation; null when download.valid is given."""


class AugmentParams(Section):
    """Training pairs that models translate: for back-translation or distillation; filtered like others."""

    models: AugmentModels
    """A model folder, or a folder of several, which translate as an ensemble; data/none: no such pairs."""
    text: AugmentText
    """Target sentences to translate back (Sennrich et al., 2016): a file, one per line, plain or compressed,
    or a folder of such files; data/none: the source of the training pairs is translated, for distillation
    (Kim & Rush, 2016)."""
    tag: Annotated[str, Field(pattern=WORD)] | None
    """Word put before the source of each of these pairs (Caswell et al., 2019); null: none."""
    keep: bool
    """Whether to train on the pairs of download.train, too."""

    @model_validator(mode="after")
    def _have_a_translator(self) -> Self:
        if self.models == NOTHING and (self.text != NOTHING or not self.keep):
            raise ValueError(
                f"expected models, or text {NOTHING} and keep true without any, found text "
                f"{self.text} and keep {str(self.keep).lower()}"
            )
        return self


Entries = Annotated[int, Field(ge=1, le=10**8)]


class VocabularyParams(Section):
    """Word pieces or words."""

    kind: Literal["bpe", "sentencepiece", "word"]
    """`bpe`: pieces of words; `sentencepiece`: pieces of a unigram model, with bytes for rare characters,
    meant for raw text; `word`: whole words, with unknown words replaced."""
    joint: bool
    """For pieces: learn one segmentation for both sides; the two vocabularies stay separate (T26)."""
    source_size: Entries
    """Number of most frequent words, or of pieces; if joint, of both sides together, of which each has those
    that occur in it. The training data must yield that many."""
    target_size: Entries
    """The same for the target; equal to source_size if joint."""

    @model_validator(mode="after")
    def _joint_fits(self) -> Self:
        if self.joint and self.kind == "word":
            raise ValueError("expected joint: false, as word vocabularies are separate; found true")
        if self.joint and self.source_size != self.target_size:
            raise ValueError(
                "expected the same source_size and target_size, as joint: true learns one model, found "
                f"{self.source_size} and {self.target_size}"
            )
        return self


class SelectionParams(Section):
    """Vocabulary selection: a batch's output layer covers only part of the target vocabulary (§5.4).

    A translation then depends on the other sentences in its batch, because it may use their candidates.
    """

    common: Count
    """The most frequent target entries, which every batch includes (500 in the Lua code)."""
    candidates: Positive
    """Alignment candidates per source entry, only the most frequent ones (100 in the Lua code)."""


class AlignParams(Section):
    """Alignment for the dictionary of unknown-word replacement (§4.3) and for vocabulary selection (§5.4)."""

    backend: Literal["builtin", "fast_align", "none"]
    """`builtin` is our aligner, which gives the links of fast_align, the authors' program (T33); `fast_align`
    needs the programs fast_align and atools on PATH, and is for comparisons; `none` makes an empty
    dictionary, so that unknown words are copied. Nothing is aligned unless replace.enabled is true."""
    iterations: Annotated[int, Field(ge=1, le=1000)]
    """EM iterations in each direction (5 in fast_align)."""


class CandidatesParams(Section):
    """Alignment candidates for vocabulary selection (§5.4), from a second alignment, of the encoded text."""

    per_source: Positive | None
    """Target entries kept per source entry; null: none, and no second alignment."""
