"""Word counts -> segmentation and vocabulary of each side, in a folder that `Codec.load` reads."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from convs2s.text.corpus.pair_folder import SIDES
from convs2s.text.vocabulary.bpe import Bpe
from convs2s.text.vocabulary.bpe_learning import learn_bpe
from convs2s.text.vocabulary.unigram import Unigram
from convs2s.text.vocabulary.unigram_learning import learn_unigram
from convs2s.text.vocabulary.vocabulary import write_vocabulary
from convs2s.text.vocabulary.word_counts import frequent_words, most_frequent


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
