"""Stage augment: target text translated back, or the training source translated -> more training pairs."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from convs2s.base.files import list_files, read_lines, write_folder
from convs2s.base.progress_bar import ProgressBar
from convs2s.config.section import path_or_none
from convs2s.config.text import AugmentModels, AugmentText
from convs2s.config.train import RunSection
from convs2s.text.sources.pair_files import clean

if TYPE_CHECKING:
    from convs2s.package.translator import Translator


def run(models: AugmentModels, text: AugmentText, run: RunSection, raw: Path, out: Path) -> None:
    """Write out/{source,target}.txt, empty without models.

    Args:
        models: a model folder, or a folder of several, which translate as an ensemble; or data/none.
        text: a file, or a folder of files, of target sentences, which the models translate to the source;
            with data/none, they translate raw/source.txt to the target.
    """
    folder, back = path_or_none(models), path_or_none(text)
    if folder is None:
        write_folder(out, [])
        return
    # These imports take seconds.
    from convs2s.base.parallel import cores  # noqa: PLC0415
    from convs2s.decode.load import find_device  # noqa: PLC0415
    from convs2s.package.folder import list_models, read_settings  # noqa: PLC0415
    from convs2s.package.translator import load  # noqa: PLC0415

    files = list_files(back) if back else [raw / "source.txt"]

    def lines() -> Iterator[str]:
        return filter(str.strip, (clean(line) for path in files for line in read_lines(path)))

    total = sum(1 for _ in lines())  # reads all of it: a fault at its end is an error now, not in hours
    if total == 0:
        raise ValueError(f"{', '.join(map(str, files))}: expected sentences to translate, found none.")
    # Beside a GPU they would read and write words, which none has run yet.
    paths = list_models(folder)
    device = find_device(None, read_settings(paths[0]).translate.precision)
    count = cores() if device.type == "cpu" else 1
    translator = load(paths, processes=count, search=run.search, keep_literals=False, capitals=False)
    pairs = translate_lines(translator, lines(), total)
    write_folder(out, ((translation, sentence) for sentence, translation in pairs) if back else pairs)


def translate_lines(translator: "Translator", lines: Iterator[str], total: int) -> Iterator[tuple[str, str]]:
    """Yield each of `total` lines with its translation, in order, a chunk at a time; show progress."""
    from convs2s.decode.load import CHUNK_BATCHES  # noqa: PLC0415  # takes seconds

    most = CHUNK_BATCHES * translator.words.batch_sentences
    with ProgressBar(total=total, desc="augment", unit=" sentences", unit_scale=True) as progress:
        while chunk := list(itertools.islice(lines, most)):
            n_best_lists = translator.translate_n_best(chunk, on_done=progress.update)
            yield from zip(chunk, (ranked[0].text for ranked in n_best_lists), strict=True)
