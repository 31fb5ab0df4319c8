"""Stage download: the sentence pairs of one split, from wherever params.yaml says."""

from pathlib import Path

from convs2s.config.download import (
    DownloadParams,
    FilesSource,
    SacrebleuSource,
    Source,
    Split,
    SplitParams,
    UrlSource,
)
from convs2s.config.section import Languages
from convs2s.text.sources.pair_files import Part, file_part, list_file_names
from convs2s.text.sources.remote import remote_part
from convs2s.text.sources.split import write_split


def run(download: DownloadParams, languages: Languages, split: Split, downloads: Path, out: Path) -> None:
    """Write the sources of a split to out/{source,target}.txt, one after the other.

    Also writes provenance.json (the origin of the pairs), and for the test split any additional references as
    target.2.txt and so on. Network downloads are kept in `downloads`, which is safe to delete.
    """
    params: SplitParams = getattr(download, split)
    local = Path(download.folder)
    parts = [open_part(source, languages, local, downloads) for source in params.sources]
    references = getattr(params, "references", None) or ()  # of the test split
    sample = getattr(params, "pairs", None)  # of the training split
    write_split(parts, out, [local / name for name in references], sample)


def open_part(source: Source, languages: Languages, local: Path, downloads: Path) -> Part:
    """Open a source in params.yaml, fetching it if necessary."""
    match source:
        case FilesSource():
            return file_part([local / name for name in list_file_names(source)], source.columns, languages)
        case UrlSource():
            return remote_part(source, languages, local, downloads)
        case SacrebleuSource():
            from convs2s.text.sources.sacrebleu_sets import sacrebleu_part  # noqa: PLC0415  # takes 0.4 s

            return sacrebleu_part(source.name, languages, downloads / "sacrebleu")
