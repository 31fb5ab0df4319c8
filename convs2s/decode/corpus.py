"""Translate a corpus, chunk by chunk."""

from collections.abc import Iterator, Sequence

from tqdm import tqdm

from convs2s.decode.hypotheses import TextHypothesis
from convs2s.decode.word_translator import WordTranslator

# Batches per chunk: enough to group sentences of similar length, few enough to hold in memory.
CHUNK_BATCHES = 64


def translate_corpus(
    translator: WordTranslator, sentences: Sequence[list[str]], keep_attention: bool
) -> Iterator[list[TextHypothesis]]:
    """Yield the hypotheses of tokenized sentences in order, and show progress.

    Raises:
        ValueError: if the model's scores are not numbers.
    """
    chunk = CHUNK_BATCHES * translator.params.batch_sentences
    with tqdm(total=len(sentences), desc="translate", unit=" sentences", disable=None) as progress:
        for start in range(0, len(sentences), chunk):
            chosen = sentences[start : start + chunk]
            yield from translator.translate(chosen, keep_attention, on_done=progress.update)
