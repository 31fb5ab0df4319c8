"""Stage download: the sentence pairs of one split, from wherever params.yaml says."""

from pathlib import Path

from convs2s.config.download import (
    DownloadParams,
    FilesSource,
    MtdataSource,
    PairFiles,
    SacrebleuSource,
    Source,
    SplitParams,
    TestSplitParams,
    TrainSplitParams,
    UrlSource,
)
from convs2s.config.section import Languages
from convs2s.text.sources.mtdata_sets import mtdata_parts
from convs2s.text.sources.pair_files import Part, file_part
from convs2s.text.sources.remote import Remote, remote_part
from convs2s.text.sources.sacrebleu_sets import sacrebleu_part
from convs2s.text.sources.split import Split, write_split


def run(download: DownloadParams, languages: Languages, split: Split, downloads: Path, out: Path) -> None:
    """Write the sources of a split to out/{source,target}.txt, one after the other.

    Also writes provenance.json (the origin of the pairs), and for the test split any additional references as
    target.2.txt and so on. Network downloads are kept in `downloads`, which is safe to delete.
    """
    given: SplitParams = getattr(download, split)
    local = Path(download.folder)
    parts = [part for one in given.sources for part in open_parts(one, languages, local, downloads)]
    references = given.references if isinstance(given, TestSplitParams) else None
    sample = given.pairs if isinstance(given, TrainSplitParams) else None
    write_split(parts, out, [local / name for name in references or ()], sample)


def open_parts(source: Source, languages: Languages, local: Path, downloads: Path) -> list[Part]:
    """Return the parts of a source in params.yaml, fetching them if necessary."""
    match source:
        case FilesSource():
            return [file_part([local / name for name in names(source)], source.columns)]
        case UrlSource():
            files = [Remote(file.urls, file.checksum) for file in source.fetch]
            return [remote_part(files, names(source), source.columns, local, downloads)]
        case MtdataSource():
            return mtdata_parts(source.ids, source.sha256, languages, downloads / "mtdata")
        case SacrebleuSource():
            return [sacrebleu_part(source.name, languages, downloads / "sacrebleu")]


def names(files: PairFiles) -> list[str]:
    """Return the names of the two files, or of the one TSV."""
    return [name for name in (files.source, files.target, files.tsv) if name is not None]
