"""All of params.yaml: its sections, and the rules that span several of them."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from convs2s.config.download import DownloadParams
from convs2s.config.faults import spell_value
from convs2s.config.model import ModelParams
from convs2s.config.results import EvaluateParams, PackageParams, ReplaceParams, TuneParams
from convs2s.config.section import LANGUAGE, NOTHING, Count, Section
from convs2s.config.text import AlignParams, AugmentParams, CandidatesParams, FilterParams, VocabularyParams
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.train import RunSection, TrainParams
from convs2s.config.translate import TranslateSection

Language = Annotated[str, Field(pattern=LANGUAGE)]


class Params(Section):
    """All of params.yaml."""

    languages: Annotated[tuple[Language, Language], Field(strict=False)]
    """Source and target language, as ISO 639 codes, which sacremoses and sacreBLEU know."""
    seeds: Annotated[list[Count], Field(min_length=1)]
    """One training run, and one DVC stage, per seed; evaluate.ensembles adds an ensemble of their models."""
    download: DownloadParams
    augment: AugmentParams
    tokenize: TokenizeParams
    filter: FilterParams
    vocabulary: VocabularyParams
    align: AlignParams
    candidates: CandidatesParams
    model: ModelParams
    train: TrainParams
    tune: TuneParams
    translate: TranslateSection
    replace: ReplaceParams
    evaluate: EvaluateParams
    package: PackageParams
    run: RunSection

    @model_validator(mode="after")
    def _sections_fit(self) -> Self:
        if repeated := [seed for seed in self.seeds if self.seeds.count(seed) > 1]:
            raise ValueError(f"seeds: expected each seed once, found {repeated[0]} more than once")
        if self.evaluate.ensembles and len(self.seeds) == 1:
            raise ValueError(
                "evaluate.ensembles: expected [] with a single seed, as an ensemble needs several models, "
                f"found {self.evaluate.ensembles}"
            )
        if self.tokenize.remove_diacritics and self.languages[0] != "ro":
            raise ValueError(
                "tokenize.remove_diacritics: expected false unless the source is Romanian, as a target keeps "
                f"its diacritics, found true with languages {self.languages}"
            )
        if bool(self.download.valid.sources) == (self.filter.valid_every is not None):
            raise ValueError(
                "filter.valid_every and download.valid.sources: expected one, and the other null or [], "
                f"found {spell_value(self.filter.valid_every)} and {len(self.download.valid.sources)} "
                "source(s)"
            )
        if self.train.tied_embeddings and self.model.embedding_size != self.model.output_embedding_size:
            raise ValueError(
                "train.tied_embeddings: expected model.embedding_size = model.output_embedding_size, found "
                f"{self.model.embedding_size} and {self.model.output_embedding_size}"
            )
        if self.train.nodes > 1 and self.run.launcher is None:
            raise ValueError(
                f"run.launcher: expected one with {self.train.nodes} nodes (train.nodes), found null"
            )
        return self

    @model_validator(mode="after")
    def _text_can_be_translated(self) -> Self:
        if self.augment.models != NOTHING and self.filter.valid_every is not None:
            raise ValueError(
                "filter.valid_every: expected null, and pairs in download.valid, with augment.models, as "
                f"translated pairs are not for validation, found {self.filter.valid_every}"
            )
        if self.augment.models != NOTHING and self.tokenize.corpus == "tokenized":
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
            if selection is not None and selection.candidates > (self.candidates.per_source or 0):
                raise ValueError(
                    f"candidates.per_source: expected at least {selection.candidates}, as {name}.selection "
                    "takes so many per source entry, such as 1000, found "
                    f"{spell_value(self.candidates.per_source)}"
                )
        if self.candidates.per_source is not None and self.align.backend == "none":
            raise ValueError("align.backend: expected one such as builtin for candidates, found none")
        return self
