"""Section model: the architecture (§3)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from convs2s.config.section import Section

Width = Annotated[int, Field(ge=1, le=2**16)]
KernelWidth = Annotated[int, Field(ge=1, le=2**10)]


class ModelParams(Section):
    """The architecture (§3)."""

    embedding_size: Width
    """Width of word and position embeddings and of the attention, in channels."""
    output_embedding_size: Width
    """Width of the decoder output before the softmax layer, in channels."""
    encoder_widths: Annotated[list[Width], Field(min_length=1, max_length=1000)]
    """Channels of each encoder block, bottom first; in params.yaml, 9 x 512, 4 x 1024 also works."""
    encoder_kernels: Annotated[list[KernelWidth], Field(min_length=1, max_length=1000)]
    """Kernel widths of the encoder blocks, in positions, all odd; in params.yaml, 9 x 3, 2 x 1 also works, or
    a single width for all blocks."""
    decoder_widths: Annotated[list[Width], Field(min_length=1, max_length=1000)]
    """Channels of each decoder block, bottom first; same short form as for the encoder."""
    decoder_kernels: Annotated[list[KernelWidth], Field(min_length=1, max_length=1000)]
    """Kernel widths of the decoder blocks, in positions; same short form as for the encoder."""
    attention: Annotated[list[bool], Field(min_length=1)]
    """Which decoder blocks attend to the source (Table 5), at least one; in params.yaml, true means all."""
    source_positions: bool
    """Position embeddings on the source side (Table 4)."""
    target_positions: bool
    """Position embeddings on the target side (Table 4)."""
    max_positions: Annotated[int, Field(ge=4, le=2**24)]
    """Rows of each position table, one of them for padding: the longest sentence has max_positions - 1
    tokens, EOS included (T18)."""
    encoder_grad_scale: Literal["paper", "fairseq"]
    """Scale the encoder's gradients by 1/(2A), without its embeddings (paper) or with them (fairseq; T6)."""
    extra_scaling: bool
    """Also scale d, z + e and c + h by sqrt(0.5), as both reference implementations do; the paper's text does
    not (T4)."""

    @model_validator(mode="after")
    def _layers_fit(self) -> Self:
        if len(self.encoder_widths) != len(self.encoder_kernels):
            raise ValueError(
                f"encoder_widths has length {len(self.encoder_widths)} but encoder_kernels "
                f"{len(self.encoder_kernels)}; give one of each per layer"
            )
        if len(self.decoder_widths) != len(self.decoder_kernels):
            raise ValueError(
                f"decoder_widths has length {len(self.decoder_widths)} but decoder_kernels "
                f"{len(self.decoder_kernels)}; give one of each per layer"
            )
        if len(self.attention) != len(self.decoder_widths):
            raise ValueError(
                f"attention has length {len(self.attention)} but decoder_widths "
                f"{len(self.decoder_widths)}; give one flag per layer"
            )
        if not any(self.attention):
            raise ValueError("attention is off in every layer; the decoder would not see the source")
        even = [k for k in self.encoder_kernels if k % 2 == 0]
        if even:
            raise ValueError(
                f"encoder_kernels has the even width {even[0]}; wanted odd widths, which keep the length"
            )
        return self
