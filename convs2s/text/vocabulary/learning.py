"""Word counts -> segmentation and vocabulary of each side, in a folder that `Codec.load` reads (T26)."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import sentencepiece

from convs2s.base.files import SIDES, write_json
from convs2s.base.parallel import map_chunks
from convs2s.ids.vocabulary import most_frequent, write_vocabulary
from convs2s.text.vocabulary.segmentation import WORD_MARK, Bpe, Unigram, replace_mark

CHUNK_PAIRS = 20_000

TRAINER: dict[str, Any] = {
    "input_format": "tsv",  # words and their counts; all are used, without sampling
    "normalization_rule_name": "identity",  # words unchanged (T26)
    "remove_extra_whitespaces": False,
    "max_sentence_length": 2**20,  # bytes; longer words are skipped
    "bos_id": -1,
    "eos_id": -1,
    "pad_id": -1,
    "unk_id": 0,
    # No piece of the text starts with a word end, whereas "<unk>" could occur.
    "unk_piece": WORD_MARK + "<unk>",
    "num_threads": 1,  # stored in the model file
    "minloglevel": 2,
}
"""Options of sentencepiece's trainer for both kinds of model."""
TRAINER_OF_KIND: dict[str, dict[str, Any]] = {
    "bpe": {
        "model_type": "bpe",
        "hard_vocab_limit": False,
        # T26: all characters kept, merges limited only by word boundaries, word ends marked.
        "character_coverage": 1.0,
        "split_by_unicode_script": False,
        "split_by_number": False,
        "split_digits": False,
        "treat_whitespace_as_suffix": True,
        "byte_fallback": False,
        "max_sentencepiece_length": 512,  # characters; the most that sentencepiece allows
    },
    "sentencepiece": {
        "model_type": "unigram",
        "hard_vocab_limit": True,
        "character_coverage": 0.9995,  # SentencePiece's default; other characters are written as bytes
        "byte_fallback": True,
    },
}


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
    """
    both = learn(kind, counts[0] + counts[1], sizes[0], "vocabulary.source_size") if joint else None
    record = {"kind": kind, "joint": joint, "source_size": sizes[0], "target_size": sizes[1]}
    for side, words, size in zip(SIDES, counts, sizes, strict=True):
        name = f"vocabulary.{side}_size"
        if kind == "word":
            if size > len(words):
                raise size_error(name, size, len(words), "different words")
            entries = most_frequent(words)[:size]
        else:
            model = both or learn(kind, words, size, name)
            (folder / f"{side}.model").write_bytes(model)
            segmentation = Unigram(model) if kind == "sentencepiece" else Bpe(model)
            entries = most_frequent(segmentation.piece_counts(words))
        write_vocabulary(folder / f"{side}.tsv", entries)
        record[f"{side}_types"] = len(entries)
    write_json(folder / "segmentation.json", record)


def size_error(name: str, size: int, most: int, what: str) -> ValueError:
    """Return the error for a vocabulary larger than the training text allows."""
    return ValueError(
        f"{name} is {size:,} but the training text has only {most:,} {what}. Expected at most {most:,}: "
        f"lower {name} in params.yaml, or add training data."
    )


class WordCounter:
    """Counts the words of chunks of pairs, one side at a time."""

    def __call__(self, pairs: list[tuple[str, str]]) -> list[Counter[str]]:
        return [Counter(" ".join(lines).split()) for lines in zip(*pairs, strict=True)]


def count_words_of_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    """Count source and target words on all cores; memory grows only with the number of distinct words."""
    source, target = Counter[str](), Counter[str]()
    for source_counts, target_counts in map_chunks(WordCounter, pairs, CHUNK_PAIRS, "count words"):
        source.update(source_counts)
        target.update(target_counts)
    return source, target


def learn(kind: str, counts: Mapping[str, int], size: int, name: str) -> bytes:
    """Learn a model whose bytes depend only on the arguments, not on the number of cores or on a path.

    Args:
        kind: "bpe" or "sentencepiece".
        size: pieces, not counting the unknown one.
        name: of the parameter that holds `size`, for messages.
    """
    words = Counter[str]()
    for word, count in counts.items():
        words[replace_mark(word)] += count  # words that differ only in U+2581 are segmented alike
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([f"{word}\t{count}" for word, count in most_frequent(words)]),
            model_writer=model,
            vocab_size=size + 1,  # sentencepiece counts the unknown piece
            **(TRAINER | TRAINER_OF_KIND[kind]),
        )
    except RuntimeError as error:
        if most := re.search(r"set it to a value <= (\d+)", str(error)):
            raise size_error(name, size, int(most[1]) - 1, "useful pieces") from error
        if fewest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
            least = f"{int(fewest[1]) - 1:,}"
            raise ValueError(
                f"{name} is {size:,} but the characters of the training text need {least} pieces. Expected "
                f"at least {least}: raise {name} in params.yaml, or clean the text of stray scripts."
            ) from error
        raise
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).get_piece_size() - 1
    if pieces < size:
        raise size_error(name, size, pieces, "useful pieces")
    return model.getvalue()
