"""Section package: the model folder."""

from typing import Annotated

from pydantic import Field

from convs2s.config.section import Section


class PackageParams(Section):
    """The model folder for users."""

    name: Annotated[str, Field(min_length=1)]
    """Title of the model card."""
    data_license: str
    """License of the training data, for the model card."""
    domain: str | None
    """Kind of text in the training data, such as news, for the model card; null: unknown."""
