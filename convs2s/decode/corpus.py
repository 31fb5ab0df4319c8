"""Translate a test set to a folder with hypotheses.jsonl and attention.npz."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from convs2s.decode.attention import Attention, write_attention
from convs2s.decode.hypotheses import TextHypothesis, write_hypotheses
from convs2s.decode.word_translator import WordTranslator
from convs2s.text.corpus.files import atomic_path

# Batches translated together: enough that sentences of similar length meet, few enough to hold in memory.
CHUNK_BATCHES = 64


def translate_corpus(
    translator: WordTranslator, sentences: Sequence[list[str]], keep_attention: bool
) -> Iterator[list[TextHypothesis]]:
    """Yield the hypotheses of tokenized sentences in order, showing progress.

    Raises:
        ValueError: if the model's scores are not numbers.
    """
    chunk = CHUNK_BATCHES * translator.params.batch_sentences
    with tqdm(total=len(sentences), desc="translate", unit=" sentences", disable=None) as progress:
        for start in range(0, len(sentences), chunk):
            chosen = sentences[start : start + chunk]
            yield from translator.translate(chosen, keep_attention, on_done=progress.update)


def write_translations(translator: WordTranslator | None, sentences: Sequence[list[str]], out: Path) -> None:
    """Translate tokenized sentences; write the folder `out`, whole or not at all.

    Args:
        translator: None writes files without any sentence.
        sentences: words of each.
        out: folder to write.

    Raises:
        ValueError: if the model's scores are not numbers.
    """
    done: list[tuple[list[str], list[TextHypothesis]]] = []
    attention: list[Attention] = []
    if translator is not None:
        found = translate_corpus(translator, sentences, keep_attention=True)
        for words, (best, *others) in zip(sentences, found, strict=True):
            done.append((words, [replace(best, attention=None), *others]))
            if best.attention is not None:
                attention.append(best.attention.halved())
    with atomic_path(out) as temporary:
        temporary.mkdir()
        write_hypotheses(temporary / "hypotheses.jsonl", done)
        write_attention(temporary / "attention.npz", attention)
