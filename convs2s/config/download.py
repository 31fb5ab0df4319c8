"""Section download: where the corpus comes from."""

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from convs2s.config.kinds import checksum_key
from convs2s.config.section import Count, Positive, Section, Share

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class PairFiles(Section):
    """Where the two sides are: two files, or two columns of one TSV (numbered from 0).

    Files are text, a sentence a line; but .sgm and .xml are test sets in segments, as of WMT and IWSLT, and
    train.tags.* the talks of WIT3.
    """

    source: str | None
    """File of source sentences; null when `tsv` is given."""
    target: str | None
    """File of target sentences; null when `tsv` is given."""
    tsv: str | None
    """File with both sides, tab-separated; null when `source` and `target` are given."""
    columns: Annotated[tuple[Count, Count], Field(strict=False)] | None
    """Columns of source and target in the TSV; null without one."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        two_files = self.source is not None and self.target is not None
        one_file = self.tsv is not None and self.columns is not None
        if two_files == one_file or (self.tsv is None) != (self.columns is None):
            raise ValueError("give either `source` and `target`, or `tsv` and `columns`; the others null")
        if one_file and (self.source is not None or self.target is not None):
            raise ValueError("give either `source` and `target`, or `tsv` and `columns`; the others null")
        return self


class GeneratedSource(Section):
    """Pairs of the embedded English-German grammar."""

    kind: Literal["generated"]
    pairs: Positive
    """Number of sentence pairs."""
    seed: Count
    """Another seed, another corpus."""
    noise: Share
    """Share of pairs made bad on purpose (too long, ill-proportioned, empty); train only."""


class FilesSource(PairFiles):
    """Files of the user's own, looked up in `download.folder`; plain, .gz, .bz2, .xz or .zst."""

    kind: Literal["files"]


class RemoteFile(Section):
    """A file or archive to fetch."""

    urls: Annotated[list[str], Field(min_length=1)]
    """Where it is, mirrors tried in turn."""
    sha256: Sha256 | None
    """Of the file as fetched, before it is unpacked; null where it is not known: any file is taken then, and
    its hash told."""


class Md5RemoteFile(Section):
    """A file or archive to fetch of which only the MD5 is published, as of WMT's test sets."""

    urls: Annotated[list[str], Field(min_length=1)]
    """Where it is, mirrors tried in turn."""
    md5: Md5
    """Of the file as fetched, before it is unpacked."""


AnyRemoteFile = Annotated[
    Annotated[RemoteFile, Tag("by_sha256")] | Annotated[Md5RemoteFile, Tag("by_md5")],
    Discriminator(checksum_key),
]


class UrlSource(PairFiles):
    """Files from the network; names are file names, or paths inside the fetched archives."""

    kind: Literal["url"]
    fetch: Annotated[list[AnyRemoteFile], Field(min_length=1)]
    """What is fetched; a file of that name and checksum in `download.folder` is taken instead."""


class MtdataSource(Section):
    """Data sets by their mtdata ids (needs the extra `mtdata`)."""

    kind: Literal["mtdata"]
    ids: Annotated[list[str], Field(min_length=1)]
    """For example StanfordNLP-wmt14_train-1-eng-deu."""
    sha256: dict[str, Sha256]
    """Where known, id -> sha256 of the pairs as 'source TAB target LF' lines; may be empty."""


class SacrebleuSource(Section):
    """A test set by its sacreBLEU name."""

    kind: Literal["sacrebleu"]
    name: str
    """For example wmt14/full."""


Source = Annotated[
    GeneratedSource | FilesSource | UrlSource | MtdataSource | SacrebleuSource, Field(discriminator="kind")
]


class DownloadParams(Section):
    """Where the corpus comes from."""

    source_language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
    """ISO 639 code, as sacremoses and sacreBLEU know it."""
    target_language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
    """ISO 639 code."""
    folder: str
    """Folder of local files, from the repository root; when a file in it changes, `dvc repro` notices."""
    train: Annotated[list[Source], Field(min_length=1)]
    """Training pairs: these, one after the other."""
    valid: list[Source]
    """Validation pairs; [] takes every N-th training pair instead (filter.valid_every)."""
    development: list[Source]
    """Pairs that translate.alpha is tuned on (§4.3); [] takes the validation pairs."""
    test: Annotated[list[Source], Field(min_length=1)]
    """Test pairs."""
    references: list[str]
    """Files in `folder` with further references of the test pairs, a line each, for ROUGE; mostly []."""
