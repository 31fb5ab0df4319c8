"""Word counts -> segmentation and vocabulary of each side, in a folder that `Codec.load` reads (T26)."""

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import sentencepiece

from convs2s.text.corpus.files import SIDES
from convs2s.text.corpus.parallel import map_chunks
from convs2s.text.counted import counted
from convs2s.text.vocabulary.bpe import WORD_END, Bpe, replace_mark
from convs2s.text.vocabulary.unigram import BYTES, Unigram
from convs2s.text.vocabulary.vocabulary import write_vocabulary

CHUNK_PAIRS = 20_000
COVERAGE = 0.9995
"""Share of the text's characters that get a piece (SentencePiece's default); others are written as bytes."""
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


def write_codecs(
    folder: Path,
    counts: tuple[Counter[str], Counter[str]],
    kind: Literal["bpe", "sentencepiece", "word"],
    joint: bool,
    sizes: tuple[int, int],
) -> None:
    """Learn segmentation and vocabularies from the word counts of both sides; write them to the folder.

    Even with a joint segmentation, a side's vocabulary has only the pieces of that side's text (T26).

    Args:
        folder: must exist.
        sizes: vocabulary entries of each side; equal if joint.

    Raises:
        ValueError: if the text does not allow vocabularies of these sizes.
    """
    learn: Callable[[Mapping[str, int], int, str], bytes] = (
        learn_unigram if kind == "sentencepiece" else learn_bpe
    )
    both = learn(counts[0] + counts[1], sizes[0], "vocabulary.source_size") if joint else None
    record = {"kind": kind, "joint": joint, "source_size": sizes[0], "target_size": sizes[1]}
    for side, words, size in zip(SIDES, counts, sizes, strict=True):
        name = f"vocabulary.{side}_size"
        if kind == "word":
            entries = frequent_words(words, size, name)
        else:
            model = both or learn(words, size, name)
            (folder / f"{side}.model").write_bytes(model)
            segmentation = Unigram(model) if kind == "sentencepiece" else Bpe(model)
            entries = most_frequent(segmentation.piece_counts(words))
        write_vocabulary(folder / f"{side}.tsv", entries)
        record[f"{side}_types"] = len(entries)
    text = json.dumps(record, indent=2) + "\n"
    (folder / "segmentation.json").write_text(text, encoding="utf-8", newline="\n")


def most_frequent(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return entries and counts, most frequent first, ties in code point order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def frequent_words(counts: Mapping[str, int], size: int, name: str) -> list[tuple[str, int]]:
    """Return the `size` most frequent words with their counts.

    Args:
        name: of the parameter that holds `size`, for the message.

    Raises:
        ValueError: if there are fewer words.
    """
    if size > len(counts):
        raise too_large(name, size, len(counts), "different words")
    return most_frequent(counts)[:size]


def too_large(name: str, size: int, most: int, what: str) -> ValueError:
    """Return the error for a vocabulary larger than the training text allows."""
    return ValueError(
        f"{name} is {size:,} but the training text has only {most:,} {what}. Expected at most {most:,}: "
        f"lower {name} in params.yaml, or add training data."
    )


class WordCounter:
    """Counts the words of chunks of pairs, one side at a time."""

    def __call__(self, pairs: list[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
        source: Counter[str] = Counter()
        target: Counter[str] = Counter()
        for one, other in pairs:
            source.update(one.split())
            target.update(other.split())
        return source, target


def count_words(pairs: Iterable[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    """Count source and target words on all cores; memory grows only with the number of distinct words."""
    source: Counter[str] = Counter()
    target: Counter[str] = Counter()
    for one, other in map_chunks(WordCounter, pairs, CHUNK_PAIRS, "count words"):
        source.update(one)
        target.update(other)
    return source, target


def learn_bpe(counts: Mapping[str, int], size: int, name: str) -> bytes:
    """Learn a sentencepiece model of `size` pieces, not counting the unknown one.

    Its bytes depend only on the counts and the size, not on the number of cores or on a path.

    Args:
        counts: of each word; all are used, without sampling.
        name: of the parameter that holds `size`, for messages.

    Raises:
        ValueError: if the words yield fewer pieces, or their characters need more.
    """
    words = merge_words(counts)
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


def merge_words(counts: Mapping[str, int]) -> Counter[str]:
    """Return the counts of words as they are segmented; words that differ only in U+2581 are merged."""
    words: Counter[str] = Counter()
    for word, count in counts.items():
        words[replace_mark(word)] += count
    return words


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
    words = most_frequent(merge_words(counts))
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
        raise explain_size(str(error), size, name) from error
    return model.getvalue()


def explain_size(said: str, size: int, name: str) -> Exception:
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
