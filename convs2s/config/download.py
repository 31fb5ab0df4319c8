"""Section download: where the corpus comes from."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from convs2s.config.kinds import LANGUAGE, MD5, SHA256, checksum_key, without_password
from convs2s.config.section import Count, Positive, Section

Url = Annotated[str, AfterValidator(without_password)]
Sha256 = Annotated[str, Field(pattern=SHA256)]
Md5 = Annotated[str, Field(pattern=MD5)]


class PairFiles(Section):
    """Where the two sides are: two files, or two columns of one TSV (numbered from 0).

    Files are text, one sentence per line, except for the segmented test sets of WMT and IWSLT (.sgm, .xml)
    and the tagged talks of WIT3 (train.tags.*).
    """

    source: str | None
    """File of source sentences; null when `tsv` is given."""
    target: str | None
    """File of target sentences; null when `tsv` is given."""
    tsv: str | None
    """Tab-separated file with both sides; null when `source` and `target` are given."""
    columns: Annotated[tuple[Count, Count], Field(strict=False)] | None
    """Columns of source and target in the TSV; null without `tsv`."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        two_files = self.source is not None and self.target is not None
        one_file = self.tsv is not None and self.columns is not None
        if two_files == one_file or (self.tsv is None) != (self.columns is None):
            raise ValueError("give either `source` and `target`, or `tsv` and `columns`; the others null")
        if one_file and (self.source is not None or self.target is not None):
            raise ValueError("give either `source` and `target`, or `tsv` and `columns`; the others null")
        return self


class FilesSource(PairFiles):
    """Your own files, looked up in `download.folder`; plain, .gz, .bz2, .xz or .zst."""

    kind: Literal["files"]


class RemoteFile(Section):
    """A file or archive to fetch."""

    urls: Annotated[list[Url], Field(min_length=1)]
    """Where to fetch it; mirrors are tried in turn."""
    sha256: Sha256 | None
    """Checksum of the file as fetched, before unpacking; null if unknown: any file is then accepted, and its
    hash is logged."""


class Md5RemoteFile(Section):
    """A file or archive to fetch whose only published checksum is an MD5, such as WMT's test sets."""

    urls: Annotated[list[Url], Field(min_length=1)]
    """Where to fetch it; mirrors are tried in turn."""
    md5: Md5
    """Checksum of the file as fetched, before unpacking."""


AnyRemoteFile = Annotated[
    Annotated[RemoteFile, Tag("by_sha256")] | Annotated[Md5RemoteFile, Tag("by_md5")],
    Discriminator(checksum_key),
]


class UrlSource(PairFiles):
    """Files from the network, given as file names or as paths inside the fetched archives."""

    kind: Literal["url"]
    fetch: Annotated[list[AnyRemoteFile], Field(min_length=1)]
    """Files to fetch; a file with the same name and checksum in `download.folder` is used instead."""


class MtdataSource(Section):
    """Data sets by mtdata id (needs the extra `mtdata`)."""

    kind: Literal["mtdata"]
    ids: Annotated[list[str], Field(min_length=1)]
    """For example StanfordNLP-wmt14_train-1-eng-deu."""
    sha256: dict[str, Sha256]
    """id -> sha256 of the pairs as 'source TAB target LF' lines, where known; may be empty."""


class SacrebleuSource(Section):
    """A test set by its sacreBLEU name."""

    kind: Literal["sacrebleu"]
    name: str
    """For example wmt14/full."""


Source = Annotated[FilesSource | UrlSource | MtdataSource | SacrebleuSource, Field(discriminator="kind")]


class DownloadParams(Section):
    """Where the corpus comes from."""

    source_language: Annotated[str, Field(pattern=LANGUAGE)]
    """ISO 639 code, as sacremoses and sacreBLEU know it."""
    target_language: Annotated[str, Field(pattern=LANGUAGE)]
    """ISO 639 code."""
    folder: str
    """Folder of local files, relative to the repository root; `dvc repro` detects changes in it."""
    train: Annotated[list[Source], Field(min_length=1)]
    """Training pairs: all of these sources, in order."""
    train_pairs: Positive | None
    """Training pairs to use, drawn at random from all of them, always the same ones; null: all."""
    valid: list[Source]
    """Validation pairs; [] holds out every Nth training pair instead (filter.valid_every)."""
    development: list[Source]
    """Pairs for tuning translate.alpha (§4.3); [] uses the validation pairs."""
    test: Annotated[list[Source], Field(min_length=1)]
    """Test pairs."""
    references: list[str]
    """Files in `folder` with additional references for the test pairs, one per line; only for ROUGE, usually
    []."""
