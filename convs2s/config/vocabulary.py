"""Section vocabulary: word pieces or words; and the selection of vocabulary entries in other sections."""

from typing import Literal, Self

from pydantic import model_validator

from convs2s.config.section import Count, Positive, Section


class VocabularyParams(Section):
    """Word pieces or words."""

    kind: Literal["bpe", "sentencepiece", "word"]
    """`bpe`: pieces of words; `sentencepiece`: pieces of a unigram model, with bytes for rare characters,
    meant for raw text; `word`: whole words, with unknown words replaced."""
    joint: bool
    """For pieces: learn one segmentation for both sides; the two vocabularies stay separate (T26)."""
    source_size: Positive
    """Number of most frequent words, or of pieces; if joint, of both sides together, of which each has those
    that occur in it. The training data must yield that many."""
    target_size: Positive
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
