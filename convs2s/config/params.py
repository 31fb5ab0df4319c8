"""All of params.yaml: its sections, and the rules that span several of them."""

from typing import Self

from pydantic import model_validator

from convs2s.config.align import AlignParams
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
    def _romanian_fits(self) -> Self:
        source, target = self.download.source_language, self.download.target_language
        if self.tokenize.remove_diacritics and source != "ro":
            raise ValueError(
                "tokenize.remove_diacritics is for a Romanian source; found download.source_language "
                f"{source!r}. Wanted false: a target keeps its diacritics"
            )
        if self.tokenize.normalize_romanian and "ro" not in (source, target):
            raise ValueError(
                "tokenize.normalize_romanian is true, but neither download.source_language "
                f"({source!r}) nor download.target_language ({target!r}) is 'ro'. Wanted false"
            )
        return self

    @model_validator(mode="after")
    def _one_validation_set(self) -> Self:
        if bool(self.download.valid) == (self.filter.valid_every is not None):
            raise ValueError(
                "filter.valid_every and download.valid: exactly one must be given, the other null or []; "
                f"found valid_every {self.filter.valid_every}, and download.valid of length "
                f"{len(self.download.valid)}"
            )
        return self

    @model_validator(mode="after")
    def _references_are_used(self) -> Self:
        if self.download.references and self.evaluate.rouge is None:
            raise ValueError(
                f"download.references names {len(self.download.references)} file(s), which only ROUGE uses, "
                "but evaluate.rouge is null; wanted duc2004 or gigaword there, or no references"
            )
        return self

    @model_validator(mode="after")
    def _ensembles_have_members(self) -> Self:
        if self.evaluate.ensembles and len(self.train.seeds) < 2:
            raise ValueError(
                f"evaluate.ensembles is {self.evaluate.ensembles} but train.seeds is {self.train.seeds}: an "
                "ensemble needs two models or more; wanted evaluate.ensembles [], or more seeds"
            )
        return self

    @model_validator(mode="after")
    def _candidates_suffice(self) -> Self:
        if self.train.selection and not self.translate.selection:
            raise ValueError(
                "train.selection is set but translate.selection is null: a softmax over the whole vocabulary "
                "would compare entries that training never compared; wanted a selection there as well"
            )
        for name, selection in (("train", self.train.selection), ("translate", self.translate.selection)):
            if selection is not None and selection.candidates > (self.align.candidates or 0):
                raise ValueError(
                    f"{name}.selection takes {selection.candidates} candidates per source entry but "
                    f"align.candidates is {self.align.candidates}; wanted at least as many, 1000 for example"
                )
        return self
