"""Section vocabulary: word pieces or words."""

from typing import Literal, Self

from pydantic import model_validator

from convs2s.config.section import Positive, Section


class VocabularyParams(Section):
    """Word pieces or words."""

    kind: Literal["bpe", "sentencepiece", "word"]
    """`bpe`: pieces of words; `sentencepiece`: pieces of a unigram model, with bytes for rare characters,
    meant for raw text; `word`: whole words, with unknown words replaced."""
    joint: bool
    """For pieces: learn one segmentation for both sides; the two vocabularies stay separate (T26)."""
    source_size: Positive
    """Number of pieces in the model (the joint one, if joint), or number of most frequent words."""
    target_size: Positive
    """The same for the target; equal to source_size if joint."""

    @model_validator(mode="after")
    def _joint_fits(self) -> Self:
        if self.joint and self.kind == "word":
            raise ValueError("joint: true needs kind: bpe or sentencepiece; word vocabularies are separate")
        if self.joint and self.source_size != self.target_size:
            raise ValueError(
                f"joint: true learns one model, so source_size ({self.source_size}) and target_size "
                f"({self.target_size}) must be equal"
            )
        return self
