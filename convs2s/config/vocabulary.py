"""Section vocabulary: word pieces or words."""

from typing import Literal, Self

from pydantic import model_validator

from convs2s.config.section import Positive, Section


class VocabularyParams(Section):
    """Word pieces or words."""

    kind: Literal["bpe", "word"]
    """Pieces of words, or whole words with replacement of unknown ones."""
    joint: bool
    """bpe: learn one segmentation for both sides; the two vocabularies stay separate (T26)."""
    source_size: Positive
    """Types: pieces of the BPE model (of the joint one, if joint), or most frequent words."""
    target_size: Positive
    """Types, likewise; equal to source_size if joint."""

    @model_validator(mode="after")
    def _joint_fits(self) -> Self:
        if self.joint and self.kind == "word":
            raise ValueError("joint: true needs kind: bpe; word vocabularies are separate")
        if self.joint and self.source_size != self.target_size:
            raise ValueError(
                f"joint: true learns one model, so source_size ({self.source_size}) and target_size "
                f"({self.target_size}) must be equal"
            )
        return self
