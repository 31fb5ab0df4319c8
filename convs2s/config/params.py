"""All of params.yaml: its sections, and the rules that span several of them."""

from typing import Self

from pydantic import model_validator

from convs2s.config.align import AlignParams
from convs2s.config.augment import AugmentParams
from convs2s.config.download import DownloadParams
from convs2s.config.evaluate import EvaluateParams
from convs2s.config.filter import FilterParams
from convs2s.config.model import ModelParams
from convs2s.config.package import PackageParams
from convs2s.config.replace import ReplaceParams
from convs2s.config.section import Section
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.train import TrainParams
from convs2s.config.translate import TranslateSection
from convs2s.config.tune import TuneParams
from convs2s.config.vocabulary import VocabularyParams


class Params(Section):
    """All of params.yaml."""

    download: DownloadParams
    augment: AugmentParams
    tokenize: TokenizeParams
    filter: FilterParams
    vocabulary: VocabularyParams
    align: AlignParams
    model: ModelParams
    train: TrainParams
    tune: TuneParams
    translate: TranslateSection
    replace: ReplaceParams
    evaluate: EvaluateParams
    package: PackageParams

    @model_validator(mode="after")
    def _sections_fit(self) -> Self:
        source, target = self.download.source_language, self.download.target_language
        if self.tokenize.remove_diacritics and source != "ro":
            raise ValueError(
                "tokenize.remove_diacritics: expected false unless the source is Romanian, as a target keeps "
                f"its diacritics, found true with download.source_language {source!r}"
            )
        if self.tokenize.normalize_romanian and "ro" not in (source, target):
            raise ValueError(
                "tokenize.normalize_romanian: expected false unless a side is Romanian, found true with "
                f"download.source_language {source!r} and download.target_language {target!r}"
            )
        if bool(self.download.valid) == (self.filter.valid_every is not None):
            raise ValueError(
                "filter.valid_every and download.valid: expected one, and the other null or [], found "
                f"{self.filter.valid_every} and {len(self.download.valid)} source(s)"
            )
        if self.download.references and self.evaluate.rouge is None:
            raise ValueError(
                "evaluate.rouge: expected duc2004 or gigaword with download.references, found null"
            )
        if self.train.tied_embeddings and self.model.embedding_size != self.model.output_embedding_size:
            raise ValueError(
                "train.tied_embeddings: expected model.embedding_size = model.output_embedding_size, found "
                f"{self.model.embedding_size} and {self.model.output_embedding_size}"
            )
        if self.evaluate.ensembles and len(self.train.seeds) < 2:
            raise ValueError(
                "train.seeds: expected two or more for evaluate.ensembles, or [] there, found "
                f"{self.train.seeds}"
            )
        return self

    @model_validator(mode="after")
    def _text_can_be_translated(self) -> Self:
        if self.augment.models and self.filter.valid_every is not None:
            raise ValueError(
                "filter.valid_every: expected null, and pairs in download.valid, with augment.models, as "
                f"translated pairs are not for validation, found {self.filter.valid_every}"
            )
        if self.augment.models and self.tokenize.corpus == "tokenized":
            raise ValueError(
                "tokenize.corpus: expected raw with augment.models, which write raw text, found tokenized"
            )
        return self

    @model_validator(mode="after")
    def _candidates_suffice(self) -> Self:
        if self.train.selection and not self.translate.selection:
            raise ValueError(
                "translate.selection: expected one, as for train.selection, since a softmax over all entries "
                "would compare some that training never compared, found null"
            )
        for name, selection in (("train", self.train.selection), ("translate", self.translate.selection)):
            if selection is not None and selection.candidates > (self.align.candidates or 0):
                raise ValueError(
                    f"align.candidates: expected at least {selection.candidates}, as {name}.selection takes "
                    f"so many per source entry, found {self.align.candidates}; 1000 for example"
                )
        return self
