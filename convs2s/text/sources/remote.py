"""A corpus on the network: fetched files and archives, in which the two sides are found by name."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.text.sources.checksum import algorithm
from convs2s.text.sources.fetch import download_key, fetch, locked
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.part import Part
from convs2s.text.sources.transfer import file_name
from convs2s.text.sources.unpack import is_archive, unpack

SHOWN = 20  # names in an error message


@dataclass(frozen=True)
class Remote:
    """A file to fetch, with its SHA-256 or MD5 if one is known."""

    urls: Sequence[str]
    digest: str | None

    @property
    def provenance(self) -> dict[str, str]:
        """Name, and digest if known; otherwise only the hashes of the files used identify the content."""
        known = {} if self.digest is None else {algorithm(self.digest): self.digest}
        return {"name": file_name(self.urls[0])} | known


def remote_part(
    files: Sequence[Remote],
    names: Sequence[str],
    columns: tuple[int, int] | None,
    local: Path,
    downloads: Path,
) -> Part:
    """Fetch, unpack and open a corpus.

    Args:
        files: the files to fetch.
        names: of the source file and the target file, or of one TSV: names of fetched files, or paths inside
            fetched archives.
        columns: as in `file_part`.
        local: folder whose files are used instead of the network's if name and hash match.
        downloads: where fetched and unpacked files are kept.

    Raises:
        ConnectionError, ValueError, OSError: as `fetch`, `unpack` and `file_part`.
        FileNotFoundError: if no fetched file has or contains a name.
    """
    places = [place for file in files for place in found_in(file, local, downloads).items()]
    part = file_part([locate(name, places) for name in names], columns)
    fetched = [file.provenance for file in files]
    # Use the requested names: a fetched file's name contains its hash, unlike that of a file in `local`.
    used = [{**file, "name": name} for file, name in zip(part.provenance["files"], names, strict=True)]
    return Part(" and ".join(names), part.pairs, {"kind": "url", "files": used, "fetched": fetched})


def found_in(file: Remote, local: Path, downloads: Path) -> dict[str, Path]:
    """Fetch a file if necessary; return its path by name or, for an archive, those of the unpacked files."""
    name, key = file_name(file.urls[0]), download_key(file.urls, file.digest)
    folder = downloads / key
    if not is_archive(name):
        return {name: fetch(file.urls, file.digest, local, downloads)}
    if not folder.is_dir():
        archive = fetch(file.urls, file.digest, local, downloads)
        downloads.mkdir(parents=True, exist_ok=True)
        with locked(downloads / f"{key}.lock"):  # against the stages of other splits
            if not folder.is_dir():
                unpack(archive, folder)
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def locate(name: str, places: Sequence[tuple[str, Path]]) -> Path:
    """Return the file with this name.

    Raises:
        FileNotFoundError: if there is none; the message lists names that exist.
        ValueError: if there are several.
    """
    found = [path for place, path in places if place == name]
    if len(found) > 1:
        raise ValueError(
            f"{name!r} is in {len(found)} of the fetched files. Wanted exactly one: give each archive its "
            "own source entry in params.yaml."
        )
    if not found:
        names = [place for place, _ in places]
        shown = difflib.get_close_matches(name, names, n=SHOWN, cutoff=0.3) or names[:SHOWN]
        raise FileNotFoundError(
            f"{name!r} is not among the {len(names)} fetched file(s). Wanted one of these names under "
            f"`source`, `target` or `tsv` in params.yaml: {', '.join(shown)}"
        )
    return found[0]
