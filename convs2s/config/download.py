"""Section download: where the corpus comes from."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from convs2s.config.section import LANGUAGE, VERSION, Count, Positive, Section

SHA256 = r"^[0-9a-f]{64}$"
CHECKSUM = r"^([0-9a-f]{64}|[0-9a-f]{32})$"
WORD = r"^[!-~]+$"
PATTERNS = {
    LANGUAGE: "a code of two or three lowercase letters, such as en",
    VERSION: "a version, such as 1.0.0",
    WORD: "ASCII characters without spaces",
    SHA256: "a SHA-256 of 64 digits 0 to 9 and a to f",
    CHECKSUM: "64 digits 0 to 9 and a to f, as sha256sum prints them, or 32, as md5sum does",
}
"""The regular expressions of texts in params.yaml, in words for messages."""
Split = Literal["train", "valid", "development", "test"]


def refuse_password(url: str) -> str:
    """Reject a URL with a user name or password, without quoting it."""
    if re.match(r"\w+://[^/?#]*@", url):
        raise ValueError(
            "expected a URL without user name and password, which git and DVC would record: fetch the file "
            "yourself and put it into download.folder"
        )
    return url


class PairFiles(Section):
    """Where the two sides are: two files, two columns of one TSV (numbered from 0), or a translation memory.

    Files are text, one sentence per line, except for the segmented test sets of WMT and IWSLT (.sgm, .xml)
    and the tagged talks of WIT3 (train.tags.*).
    """

    source: str | None = None
    """File of source sentences."""
    target: str | None = None
    """File of target sentences."""
    tsv: str | None = None
    """Tab-separated file with both sides, instead of `source` and `target`."""
    columns: Annotated[tuple[Count, Count], Field(strict=False)] | None = None
    """Columns of source and target in the TSV."""

    memory: str | None = None
    """Translation memory, .tmx or .xliff, instead of `source` and `target`."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        names = "source", "target", "tsv", "columns", "memory"
        keys = [key for key in names if getattr(self, key) is not None]
        if keys not in (["source", "target"], ["tsv", "columns"], ["memory"]):
            raise ValueError(
                "expected `source` and `target`, or `tsv` and `columns`, or `memory`, found "
                + (", ".join(keys) or "none of them")
            )
        first, second = self.columns or (self.source, self.target)
        if first is not None and first == second:
            raise ValueError(f"expected a file or column of its own for each side, found {first} for both")
        return self


class FilesSource(PairFiles):
    """Your own files, looked up in `download.folder`; plain, .gz, .bz2, .xz or .zst."""

    kind: Literal["files"]


class RemoteFile(Section):
    """A file or archive to fetch."""

    urls: Annotated[list[Annotated[str, AfterValidator(refuse_password)]], Field(min_length=1)]
    """Where to fetch it; mirrors are tried in turn."""
    checksum: Annotated[str, Field(pattern=CHECKSUM)] | None
    """SHA-256 or MD5 of the file as fetched, before unpacking; null if unknown: any file is then accepted,
    and its SHA-256 is logged."""


class UrlSource(PairFiles):
    """Files from the network, given as file names or as paths inside the fetched archives."""

    kind: Literal["url"]
    fetch: Annotated[list[RemoteFile], Field(min_length=1)]
    """Files to fetch; a file with the same name and checksum in `download.folder` is used instead."""


class SacrebleuSource(Section):
    """A test set by its sacreBLEU name."""

    kind: Literal["sacrebleu"]
    name: str
    """For example wmt14/full."""


Source = Annotated[FilesSource | UrlSource | SacrebleuSource, Field(discriminator="kind")]


class SplitParams(Section):
    """The pairs of a split: all of its sources, in order."""

    sources: list[Source]
    """Where the pairs come from; [] for a split that is optional."""


class TrainSplitParams(SplitParams):
    """The training pairs."""

    sources: Annotated[list[Source], Field(min_length=1)]
    """Where the pairs come from."""
    pairs: Positive | None = None
    """How many pairs to use, drawn at random from all of them, always the same ones; null: all."""


class TestSplitParams(SplitParams):
    """The test pairs."""

    sources: Annotated[list[Source], Field(min_length=1)]
    """Where the pairs come from."""
    references: list[str] | None = None
    """Files in `download.folder` with additional references, one per line; only for ROUGE."""


class DownloadParams(Section):
    """Where the corpus comes from."""

    folder: str
    """Folder of local files, relative to the repository root; `dvc repro` detects changes in it."""
    train: TrainSplitParams
    """Training pairs."""
    valid: SplitParams
    """Validation pairs; without sources, every Nth training pair is held out instead (filter.valid_every)."""
    development: SplitParams
    """Pairs for tuning translate.alpha (§4.3); without sources, the validation pairs are used."""
    test: TestSplitParams
    """Test pairs."""
