"""About how much disk a run takes: the line that `make repro` and the flows print before it starts."""

import itertools
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import requests
from dvc.config import Config

from convs2s.config.download import FilesSource, Source, UrlSource
from convs2s.config.params import Params
from convs2s.text.sources.pair_files import list_names
from convs2s.text.sources.remote import file_name, is_archive, stored_name

GB = 10**9
# Bytes of text in a byte of a file.
EXPANSION = {".gz": 3, ".tgz": 3, ".zip": 3, ".bz2": 4, ".xz": 5, ".zst": 4}
PAIR = 300  # bytes of its text, at most; about 280 in WMT'14, 78 in Tatoeba
STAGES = 4  # bytes in data/raw, tokenized, filtered and encoded per byte of text; 3.7 for Tatoeba


def print_disk(params: Params, root: Path) -> None:
    """Print about how much a run takes and what is free; to stderr, as a warning, if that is not enough."""
    needed, unknown = estimate(params, root)
    files = [Path(at, name) for at, _, names in os.walk(root / "data") for name in names]
    present, free = sum(path.lstat().st_size for path in files), shutil.disk_usage(root).free
    but = f", without {', '.join(unknown)} of unknown size" if unknown else ""
    found = f"found {free / GB:.1f} GB free and {present / GB:.1f} GB in data/"
    amount = f"up to about {needed / GB:.1f} GB" if needed > GB / 10 else "less than 0.1 GB"
    sentence = f"disk: expected {amount}{but}, {found}"
    if needed <= free + present:
        print(sentence)
    else:
        print(f"warning: {sentence}", file=sys.stderr)


def estimate(params: Params, root: Path) -> tuple[int, list[str]]:
    """Return the bytes that a run takes at most, and the training corpora whose size is unknown.

    Not counted: test sets, translations, earlier results, and what alignment needs, which says so itself.
    """
    fetched, text, unknown = 0, 0, list[str]()
    for source in params.download.train.sources:
        for name, size, is_fetched in read_sizes(source, root / params.download.folder, root):
            if size is None:
                unknown.append(name)
            else:
                content = size * EXPANSION.get(Path(name).suffix, 1)
                fetched, text = fetched + size * is_fetched + content * is_archive(name), text + content
    text = min(text, PAIR * (params.download.train.pairs or text))
    links = Config(str(root / ".dvc")).get("cache", {}).get("type", ["copy"])
    copies = 1 if links[0] in ("hardlink", "symlink") else 2  # the cache, and data/
    # data/models has the file of data/trained, which is once in the cache. Checkpoints have buffers.
    checkpoints = (2 + 2 * params.train.average) * {"nesterov": 2, "adam": 3}[params.train.optimizer]
    weights = 4 * count_weights(params) * len(params.seeds)
    return fetched + text * STAGES * copies + weights * (2 * copies - 1 + checkpoints), unknown


def read_sizes(source: Source, local: Path, root: Path) -> Iterator[tuple[str, int | None, bool]]:
    """Yield the name of each file of a corpus, its bytes if known, and whether it is fetched."""
    if isinstance(source, FilesSource):
        for name in list_names(source):
            own = local / name
            yield name, own.stat().st_size if own.is_file() else None, False
    elif isinstance(source, UrlSource):
        for file in source.fetch:
            own = local / file_name(file)
            found = own if own.is_file() else root / "data" / "downloads" / stored_name(file)
            size = found.stat().st_size if found.is_file() else ask_size(file.urls[0])
            yield own.name, size, found != own


def ask_size(url: str) -> int | None:
    """Return how many bytes a server says that a file has; None if it does not say within seconds."""
    try:
        answer = requests.head(url, allow_redirects=True, timeout=5, headers={"Accept-Encoding": "identity"})
        answer.raise_for_status()
        return int(answer.headers["Content-Length"])
    except (requests.RequestException, KeyError):
        return None


def count_weights(params: Params) -> int:
    """Return how many weights a model has, apart from biases."""
    model, words, size = params.model, params.vocabulary, params.model.embedding_size
    count = (words.source_size + words.target_size + 2 * model.max_positions) * size
    count += words.target_size * model.output_embedding_size
    count += 2 * size * sum(itertools.compress(model.decoder_widths, model.attention))
    for widths, kernels, output in (
        (model.encoder_widths, model.encoder_kernels, size),
        (model.decoder_widths, model.decoder_kernels, model.output_embedding_size),
    ):
        blocks = zip(kernels, [widths[0], *widths], widths, strict=False)
        count += size * widths[0] + widths[-1] * output
        count += sum((2 * kernel + (inputs != width)) * inputs * width for kernel, inputs, width in blocks)
    return count
