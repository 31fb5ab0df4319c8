"""Byte pair encoding (Sennrich et al., 2016) by sentencepiece, learned from word counts (T26).

A piece that ends a word ends in U+2581. A U+2581 within a word would look like a word end, so it is replaced
with an underscore, which it resembles; it is the only character that is not restored.
"""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import sentencepiece

from convs2s.text.vocabulary.vocabulary import most_frequent, too_large

WORD_END = "\u2581"
LONGEST_PIECE = 512  # characters; the most that sentencepiece allows
LONGEST_WORD = 2**20  # bytes; longer ones are useless for learning
CHUNK_WORDS = 10_000


def learn_bpe(counts: Mapping[str, int], size: int, name: str) -> bytes:
    """Learn a sentencepiece model of `size` pieces, not counting the unknown one.

    Its bytes depend only on the counts and the size, not on the number of cores or on a path.

    Args:
        counts: of each word; all are used, without sampling.
        name: of the parameter that holds `size`, for messages.

    Raises:
        ValueError: if these words give fewer pieces, or their characters need more.
    """
    words = learnable(counts)
    characters = set().union(WORD_END, *words)
    if size < len(characters):
        raise ValueError(
            f"{name} is {size:,} but the training text has {len(characters):,} different characters, each of "
            f"which needs a piece. Wanted at least {len(characters):,}: raise {name} in params.yaml, or "
            "clean the text of stray scripts."
        )
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([f"{word}\t{count}" for word, count in most_frequent(words)]),
        model_writer=model,
        input_format="tsv",
        model_type="bpe",
        vocab_size=size + 1,  # the unknown piece counts there
        hard_vocab_limit=False,  # reports what it found instead of failing, so that we can name it
        # T26: words unchanged, every character kept, merges limited only by words, word ends marked.
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=1.0,
        split_by_unicode_script=False,
        split_by_number=False,
        split_digits=False,
        treat_whitespace_as_suffix=True,
        byte_fallback=False,
        max_sentencepiece_length=LONGEST_PIECE,
        max_sentence_length=LONGEST_WORD,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        unk_id=0,
        # No piece of the text starts with a word end; "<unk>" itself could occur.
        unk_piece=WORD_END + "<unk>",
        num_threads=1,  # is written to the model
        minloglevel=2,
    )
    pieces = Bpe(model.getvalue()).size()
    if pieces < size:
        raise too_large(name, size, pieces, "different pieces of words")
    return model.getvalue()


def learnable(counts: Mapping[str, int]) -> Counter[str]:
    """Return the counts of words as they are segmented; words that differ only in U+2581 become one."""
    words: Counter[str] = Counter()
    for word, count in counts.items():
        words[unmarked(word)] += count
    return words


def unmarked(word: str) -> str:
    """Return the word with every U+2581 replaced with an underscore."""
    return word.replace(WORD_END, "_")


class Bpe:
    """A learned segmentation of words into pieces."""

    def __init__(self, model: bytes) -> None:
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def size(self) -> int:
        """Return the number of pieces, not counting the unknown one."""
        return int(self._model.get_piece_size()) - 1

    def pieces(self, word: str) -> list[str]:
        """Return the pieces of a word, the last of which ends in U+2581.

        A run of characters that the model does not know is a piece of its own.
        """
        pieces: list[str] = self._model.encode(unmarked(word), out_type=str)
        return pieces

    def knows(self, piece: str) -> bool:
        return bool(self._model.piece_to_id(piece) != self._model.unk_id())

    def piece_counts(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return how often each piece occurs in text with these word counts; each word is segmented once.

        Every character of the text is also a piece, if only with count 0, and so is the bare word end: any
        word made of these characters can be written in these pieces.
        """
        found: Counter[str] = Counter({WORD_END: 0})
        for word, pieces in self._segmented(counts):
            found.update(dict.fromkeys(unmarked(word), 0))
            for piece in pieces:
                found[piece] += counts[word]
        return found

    def _segmented(self, words: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        ordered = list(words)
        for start in range(0, len(ordered), CHUNK_WORDS):
            chunk = ordered[start : start + CHUNK_WORDS]
            for word, pieces in zip(
                chunk, self._model.encode([unmarked(w) for w in chunk], out_type=str), strict=True
            ):
                yield word, [part for piece in pieces for part in ([piece] if self.knows(piece) else piece)]
