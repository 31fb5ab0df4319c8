"""Learn a byte pair encoding from word counts, by sentencepiece (T26)."""

import io
from collections import Counter
from collections.abc import Mapping
from typing import Any

import sentencepiece

from convs2s.text.counted import counted
from convs2s.text.vocabulary.bpe import WORD_END, Bpe, unmarked
from convs2s.text.vocabulary.word_counts import most_frequent, too_large

LONGEST_PIECE = 512  # characters; the most that sentencepiece allows
LONGEST_WORD = 2**20  # bytes; longer words are skipped

COUNTED_WORDS: dict[str, Any] = {
    "input_format": "tsv",
    "normalization_rule_name": "identity",  # words unchanged (T26)
    "remove_extra_whitespaces": False,
    "max_sentence_length": LONGEST_WORD,
    "bos_id": -1,
    "eos_id": -1,
    "pad_id": -1,
    "unk_id": 0,
    # No piece of the text starts with a word end, whereas "<unk>" could occur.
    "unk_piece": WORD_END + "<unk>",
    "num_threads": 1,  # stored in the model file
    "minloglevel": 2,
}
"""Options of sentencepiece's trainer, for both kinds of model, to learn from counts of unchanged words."""


def learn_bpe(counts: Mapping[str, int], size: int, name: str) -> bytes:
    """Learn a sentencepiece model of `size` pieces, not counting the unknown one.

    Its bytes depend only on the counts and the size, not on the number of cores or on a path.

    Args:
        counts: of each word; all are used, without sampling.
        name: of the parameter that holds `size`, for messages.

    Raises:
        ValueError: if the words yield fewer pieces, or their characters need more.
    """
    words = learnable(counts)
    characters = set().union(WORD_END, *words)
    if size < len(characters):
        raise ValueError(
            f"{name} is {size:,} but the training text has "
            f"{counted(len(characters), 'different character')}, each of which needs a piece. "
            f"Expected at least {len(characters):,}: raise {name} in params.yaml, clean the text of stray "
            "scripts, or set vocabulary.kind: sentencepiece, which writes rare characters in bytes."
        )
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([f"{word}\t{count}" for word, count in most_frequent(words)]),
        model_writer=model,
        model_type="bpe",
        vocab_size=size + 1,  # sentencepiece counts the unknown piece
        hard_vocab_limit=False,  # return fewer pieces rather than fail: our message gives their number
        # T26: all characters kept, merges limited only by word boundaries, word ends marked.
        character_coverage=1.0,
        split_by_unicode_script=False,
        split_by_number=False,
        split_digits=False,
        treat_whitespace_as_suffix=True,
        byte_fallback=False,
        max_sentencepiece_length=LONGEST_PIECE,
        **COUNTED_WORDS,
    )
    pieces = Bpe(model.getvalue()).size()
    if pieces < size:
        raise too_large(name, size, pieces, "different pieces of words")
    return model.getvalue()


def learnable(counts: Mapping[str, int]) -> Counter[str]:
    """Return the counts of words as they are segmented; words that differ only in U+2581 are merged."""
    words: Counter[str] = Counter()
    for word, count in counts.items():
        words[unmarked(word)] += count
    return words
