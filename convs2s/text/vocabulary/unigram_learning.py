"""Learn a unigram model from counts of space-separated words, by sentencepiece."""

import io
import re
from collections.abc import Mapping

import sentencepiece

from convs2s.text.vocabulary.bpe_learning import COUNTED_WORDS, learnable
from convs2s.text.vocabulary.unigram import BYTES
from convs2s.text.vocabulary.word_counts import most_frequent, too_large

COVERAGE = 0.9995
"""Share of the text's characters that get a piece (SentencePiece's default); others are written as bytes."""


def learn_unigram(counts: Mapping[str, int], size: int, name: str) -> bytes:
    """Learn a sentencepiece model of `size` pieces, including the 256 bytes, but not the unknown piece.

    Its bytes depend only on the counts and the size, not on the number of cores or on a path.

    Args:
        counts: of each space-separated word; all are used, without sampling.
        name: of the parameter that holds `size`, for messages.

    Raises:
        ValueError: if the words yield fewer pieces, or bytes and characters need more.
        RuntimeError: if sentencepiece fails for another reason, with its message.
    """
    model = io.BytesIO()
    words = most_frequent(learnable(counts))
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([f"{word}\t{count}" for word, count in words]),
            model_writer=model,
            model_type="unigram",
            vocab_size=size + 1,  # sentencepiece counts the unknown piece
            hard_vocab_limit=True,
            character_coverage=COVERAGE,
            byte_fallback=True,
            **COUNTED_WORDS,
        )
    except RuntimeError as error:
        raise of_wrong_size(str(error), size, name) from error
    return model.getvalue()


def of_wrong_size(said: str, size: int, name: str) -> Exception:
    """Return the error for a size that sentencepiece rejected with a message."""
    if too_small := re.search(r"smaller than required_chars\. \d+ vs (\d+)", said):
        fewest = int(too_small[1]) - 1
        return ValueError(
            f"{name} is {size:,} but the {len(BYTES)} bytes and the characters of the training text need "
            f"{fewest:,} pieces. Expected at least {fewest:,}: raise {name} in params.yaml, or clean the "
            "text of stray scripts."
        )
    if too_high := re.search(r"set it to a value <= (\d+)", said):
        return too_large(name, size, int(too_high[1]) - 1, "useful pieces")
    return RuntimeError(f"sentencepiece could not learn {size:,} pieces from the training text: {said}")
