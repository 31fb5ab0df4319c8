"""Data sets that mtdata can fetch, by id, verified by a checksum, which mtdata does not do itself.

mtdata is an optional extra (https://github.com/thammegowda/mtdata). Its first call builds an index of all
data sets, which takes a minute and is kept in ~/.mtdata, or wherever the variable MTDATA points.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from convs2s.text.sources.pair_files import Part

BREAKS = re.compile(r"[\t\r\n\f\v]+")  # allowed in a TMX segment, but not in a line or a TSV cell


def mtdata_parts(
    ids: Sequence[str], sha256: Mapping[str, str], languages: tuple[str, str], downloads: Path
) -> list[Part]:
    """Fetch data sets into `downloads` and open each as a part; nothing is filtered.

    Args:
        ids: such as StanfordNLP-wmt14_train-1-eng-deu.
        sha256: by id, if known: of the pairs as 'source TAB target LF' lines.
        languages: of source and target; an id may name them in either order.
        downloads: mtdata's cache of files.

    Raises:
        ValueError: if mtdata is not installed, an id is malformed, unknown, or has other languages, or
            `sha256` has an extra id.
        ConnectionError: if mtdata cannot fetch it.
    """
    unknown = sorted(set(sha256) - set(ids))
    if unknown:
        raise ValueError(f"download: sha256 names {unknown[0]}, which is not among ids: {', '.join(ids)}")
    entries = [find_entry(name, languages) for name in ids]  # check all before the first long transfer
    opened = [fetch_entry(entry, swapped, downloads) for entry, swapped in entries]
    return [
        Part(name, pairs, {"kind": "mtdata", "id": name}, expected_sha256=sha256.get(name))
        for name, pairs in zip(ids, opened, strict=True)
    ]


def find_entry(name: str, languages: tuple[str, str]) -> tuple[Any, bool]:
    """Return mtdata's entry for an id, and whether its languages are in reverse order."""
    try:
        from mtdata.entry import DatasetId  # noqa: PLC0415  an optional extra
        from mtdata.index import INDEX  # noqa: PLC0415
        from mtdata.iso.bcp47 import BCP47Tag, bcp47  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{name} is a data set of mtdata, which is not installed ({error}). Install it with: "
            "pip install -e .[mtdata]"
        ) from error
    hint = f"Search with: mtdata list -l {'-'.join(languages)}"
    try:
        key = DatasetId.parse(name)
    except Exception as error:  # mtdata raises bare exceptions, and AssertionError
        raise ValueError(
            f"{name!r} is not an mtdata id: {error}. Expected group-name-version-language-language. {hint}"
        ) from error
    if key not in INDEX:
        raise ValueError(f"mtdata has no data set {name!r}. Check its spelling and version. {hint}")
    fits, swapped = len(key.langs) == 2, False
    if fits:
        fits, swapped = BCP47Tag.check_compat_swap(tuple(map(bcp47, languages)), key.langs)
    if not fits:
        raise ValueError(f"mtdata's {name!r} is not in the languages {' and '.join(languages)}. {hint}")
    return INDEX[key], swapped


def fetch_entry(entry: Any, swapped: bool, downloads: Path) -> Iterator[tuple[str, str]]:
    """Fetch the missing files of a data set; return its pairs, which are read as needed."""
    from mtdata.cache import Cache  # noqa: PLC0415  an optional extra
    from mtdata.parser import Parser  # noqa: PLC0415

    try:
        paths = Cache(downloads).get_entry(entry)
    except Exception as error:  # mtdata raises bare exceptions: AssertionError for an HTTP status, and so on
        raise ConnectionError(
            f"mtdata could not fetch {entry.did}: {error!r}. Run this again; if it still fails, fetch the "
            "files with `kind: url`, which tries again, and mirrors."
        ) from error
    rows = Parser(paths, ext=entry.in_ext or None, ent=entry).read_segs()
    cells = ([BREAKS.sub(" ", cell or "").strip() for cell in row[:2]] for row in rows)
    return ((second, first) if swapped else (first, second) for first, second in cells)
