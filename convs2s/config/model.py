"""Section model: the architecture (§3)."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from convs2s.config.section import Section

Width = Annotated[int, Field(ge=1, le=2**16)]
MOST_LAYERS = 1000
RUN = re.compile(r"\s*(\d{1,3})\s*x\s*(\d{1,9})\s*")  # the short form 4 x 256 of 256, 256, 256, 256
KernelWidth = Annotated[int, Field(ge=1, le=2**10)]


class ModelParams(Section):
    """The architecture (§3)."""

    embedding_size: Width
    """Width of word and position embeddings and of the attention, in channels."""
    output_embedding_size: Width
    """Width of the decoder output before the softmax layer, in channels."""
    encoder_widths: Annotated[list[Width], Field(min_length=1, max_length=MOST_LAYERS)]
    """Channels of each encoder block, bottom first; in params.yaml, 9 x 512, 4 x 1024 also works."""
    encoder_kernels: Annotated[list[KernelWidth], Field(min_length=1, max_length=MOST_LAYERS)]
    """Kernel widths of the encoder blocks, in positions, all odd; in params.yaml, 9 x 3, 2 x 1 also works, or
    a single width for all blocks."""
    decoder_widths: Annotated[list[Width], Field(min_length=1, max_length=MOST_LAYERS)]
    """Channels of each decoder block, bottom first; same short form as for the encoder."""
    decoder_kernels: Annotated[list[KernelWidth], Field(min_length=1, max_length=MOST_LAYERS)]
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

    @field_validator("encoder_widths", "encoder_kernels", "decoder_widths", "decoder_kernels", mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        """Expand the short form: 9 x 512, 4 x 1024 is nine blocks of 512 channels and four of 1,024."""
        if not isinstance(value, str):
            return value
        runs = [RUN.fullmatch(part) for part in value.split(",")]
        values = [int(run[2]) for run in runs if run for _ in range(int(run[1]))]
        if None in runs or not 1 <= len(values) <= MOST_LAYERS:
            raise ValueError(
                "expected a list with a value per block, such as [256, 256, 512], or its short form, such as "
                f"2 x 256, 1 x 512, found {value!r}"
            )
        return values

    @field_validator("encoder_kernels", "decoder_kernels", "attention", mode="before")
    @classmethod
    def _repeat(cls, value: Any, info: ValidationInfo) -> Any:
        """Repeat a single value for each block, so that one key sets the depth of a side."""
        side = "encoder" if info.field_name == "encoder_kernels" else "decoder"
        blocks = info.data.get(f"{side}_widths", [])
        return [value] * len(blocks) if isinstance(value, int) else value

    @model_validator(mode="after")
    def _layers_fit(self) -> Self:
        for name, values, side, example in (
            ("encoder_kernels", self.encoder_kernels, "encoder", "3"),
            ("decoder_kernels", self.decoder_kernels, "decoder", "3"),
            ("attention", self.attention, "decoder", "true"),
        ):
            blocks = len(getattr(self, f"{side}_widths"))
            if len(values) != blocks:
                raise ValueError(
                    f"expected {blocks} {name}, one per block of {side}_widths, found {len(values)}. Change "
                    f"one of them: a single value of {name}, such as {example}, is for all blocks"
                )
        if not any(self.attention):
            raise ValueError(
                "expected attention in some block, without which the source is unseen, found none"
            )
        if even := [width for width in self.encoder_kernels if width % 2 == 0]:
            raise ValueError(
                f"expected odd encoder_kernels, which keep the length, found the even width {even[0]}"
            )
        return self
