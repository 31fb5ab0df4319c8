"""Test sets by their sacreBLEU names, such as wmt14/full; if there are several references, the first."""

import copy
import logging
from pathlib import Path

from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.base import Dataset

from convs2s.base.files import atomic_path
from convs2s.text.sources.pair_files import Part, file_part

logger = logging.getLogger(__name__)


def sacrebleu_part(name: str, languages: tuple[str, str], downloads: Path) -> Part:
    """Fetch a test set, whose MD5 sacreBLEU checks, into `downloads` and open it."""
    pair = "-".join(languages)
    if pair not in (DATASETS[name].langpairs if name in DATASETS else ()):
        raise ValueError(
            f"sacreBLEU has no test set {name!r} for {pair}. List the names with `sacrebleu --list`, and the "
            "language pairs of one with `sacrebleu --list --test-set NAME`."
        )
    folder = downloads / f"{name.replace('/', '_')}.{pair}"
    if not folder.is_dir():
        fetch_set(DATASETS[name], pair, folder)
    part = file_part([folder / "source.txt", folder / "reference.txt"], None, languages)
    return Part(f"{name} {pair}", part.pairs, {**part.provenance, "kind": "sacrebleu", "name": name})


def fetch_set(dataset: Dataset, pair: str, folder: Path) -> None:
    """Fetch a set into a folder with source.txt and reference.txt, which appears only once complete.

    sacreBLEU takes any file that exists for complete, even after a broken transfer, so it works in a
    temporary folder, which is deleted if anything fails.
    """
    dataset = copy.copy(dataset)
    try:
        with atomic_path(folder) as temporary:
            temporary.mkdir()
            dataset._outdir = str(temporary)
            dataset._rawdir = str(temporary / "raw")
            source = dataset.get_source_file(pair)  # type: ignore[no-untyped-call]
            references = dataset.get_reference_files(pair)  # type: ignore[no-untyped-call]
            Path(source).replace(temporary / "source.txt")
            Path(references[0]).replace(temporary / "reference.txt")
            if len(references) > 1:
                logger.warning(
                    "%s %s has %d references, of which the first is used", dataset.name, pair, len(references)
                )
    except (Exception, SystemExit) as error:  # sacreBLEU calls sys.exit when the MD5 is wrong
        raise ConnectionError(
            f"sacreBLEU could not fetch {dataset.name} {pair}: {error!r}. See its own message above, and run "
            "this again; or fetch the files with `kind: url`."
        ) from error
