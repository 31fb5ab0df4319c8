"""Training pairs that models translate: back-translation and distillation."""

import itertools
from collections.abc import Iterable, Iterator

from convs2s.decode.load_words import CHUNK_BATCHES
from convs2s.package.translator import Translator
from convs2s.text.sources.pair_files import clean
from convs2s.watch.progress_bar import ProgressBar


def has_text(line: str) -> bool:
    """Return whether there is anything to translate in a line."""
    return bool(clean(line).strip())


def translate_lines(translator: Translator, lines: Iterable[str], total: int) -> Iterator[tuple[str, str]]:
    """Yield each line that has text with its translation, in order, a chunk at a time; show progress.

    Args:
        lines: of the model's source language.
        total: number of lines that have text, for the progress bar.
    """
    texts = map(clean, filter(has_text, lines))
    most = CHUNK_BATCHES * translator.words.params.batch_sentences
    with ProgressBar(total=total, desc="augment", unit=" sentences", unit_scale=True) as progress:
        while chunk := list(itertools.islice(texts, most)):
            n_best_lists = translator.translate_n_best(chunk, on_done=progress.advance)
            yield from zip(chunk, (ranked[0].text for ranked in n_best_lists), strict=True)
