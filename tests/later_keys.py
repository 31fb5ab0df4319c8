"""Sections that have gained a key, as a later version may add it, for the time of a test."""

import contextlib
from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from convs2s.config import format as formats
from convs2s.config.load import parse_params
from convs2s.config.model import ModelParams
from convs2s.config.params import Params
from convs2s.config.section import later
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.train import TrainParams
from convs2s.config.translate import PackagedTranslateParams, TranslateParams, TranslateSection
from convs2s.model.description import Description
from convs2s.package.folder import TokenizerFile, TranslateFile
from tests.presets import params_of
from tests.train.tiny import default_params

KEY = "added_key"
DEFAULT = 0.0
SINCE = "99.0.0"
SECTIONS: dict[str, list[type[BaseModel]]] = {
    "model": [ModelParams],
    "tokenize": [TokenizeParams],
    "train": [TrainParams],
    "translate": [TranslateParams, TranslateSection, PackagedTranslateParams],
}
HOLDERS: list[type[BaseModel]] = [Params, Description, TokenizerFile, TranslateFile]


def rebuild() -> None:
    """Make pydantic take the fields as they are, and forget what was parsed with others."""
    for cached in (parse_params, params_of, default_params):
        cached.cache_clear()
    for schema in [*(schema for schemas in SECTIONS.values() for schema in schemas), *HOLDERS]:
        schema.model_rebuild(force=True)


@contextlib.contextmanager
def gained_keys() -> Iterator[None]:
    """Add `added_key: float = later(0.0, since="99.0.0")` to all of SECTIONS."""
    schemas = [schema for schemas in SECTIONS.values() for schema in schemas]
    readable = formats.READABLE
    try:
        for schema in schemas:
            field = FieldInfo.from_annotated_attribute(float, later(DEFAULT, since=SINCE))
            field.description = "A key that was added."
            schema.model_fields[KEY] = field
        rebuild()
        formats.READABLE = SINCE
        yield
    finally:
        for schema in schemas:
            schema.model_fields.pop(KEY, None)
        rebuild()
        formats.READABLE = readable
