"""Byte pair encoding (Sennrich et al., 2016) by sentencepiece, learned from word counts (T26).

A piece that ends a word ends in U+2581. A U+2581 within a word would be taken for such an end, so it is
replaced by an underscore, which it resembles; this is the only character that does not come back.
"""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import sentencepiece

from convs2s.text.vocabulary.vocabulary import most_frequent, too_large

WORD_END = "\u2581"
LONGEST_PIECE = 512  # characters; the most that sentencepiece allows
LONGEST_WORD = 2**20  # bytes; longer ones teach nothing
CHUNK_WORDS = 10_000


def learn_bpe(counts: Mapping[str, int], size: int, name: str) -> bytes:
    """Learn a sentencepiece model of `size` pieces, the unknown one not counted.

    Its bytes depend on the counts and the size only: neither on the number of cores nor on a path.

    Args:
        counts: of each word; all are used, none is sampled.
        name: of the parameter that holds `size`, for messages.

    Raises:
        ValueError: if fewer pieces can be made of these words, or more are needed for their characters.
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
        # T26: words as they are, every character kept, merges limited by words alone, marks at word ends.
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
        # A word end at the start can be no piece of the text; "<unk>" can.
        unk_piece=WORD_END + "<unk>",
        num_threads=1,  # is written to the model
        minloglevel=2,
    )
    pieces = Bpe(model.getvalue()).size()
    if pieces < size:
        raise too_large(name, size, pieces, "different pieces of words")
    return model.getvalue()


def learnable(counts: Mapping[str, int]) -> Counter[str]:
    """Return the counts of words as they are segmented; two that differ in U+2581 only become one."""
    words: Counter[str] = Counter()
    for word, count in counts.items():
        words[unmarked(word)] += count
    return words


def unmarked(word: str) -> str:
    """Return the word with every U+2581 replaced by an underscore."""
    return word.replace(WORD_END, "_")


class Bpe:
    """A learned segmentation of words into pieces."""

    def __init__(self, model: bytes) -> None:
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def size(self) -> int:
        """Return the number of pieces, the unknown one not counted."""
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
        """Return how often each piece occurs in text of these word counts; each word is segmented once.

        Every character of the text is a piece too, if with count 0, as is the word end alone: so any
        word of these characters can be written in these pieces.
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
