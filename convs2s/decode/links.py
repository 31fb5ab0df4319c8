"""Which words of a translation come from which source words, by attention (§3.3)."""

from collections import defaultdict
from collections.abc import Sequence

from convs2s.decode.translations import Hypothesis
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.words.places import has_letters


def attend_words(hypothesis: Hypothesis, codec: Codec) -> list[set[int]]:
    """Return, for each word of a hypothesis, the source words that its tokens attend to most."""
    attended: list[set[int]] = [set() for _ in hypothesis.words]
    owners = codec.word_of_entry(hypothesis.tokens[:-1])
    for source, word in zip(hypothesis.sources, owners, strict=False):  # EOS has a source but no word
        if word >= 0:
            attended[word].add(source)
    return attended


def find_counterparts(
    seen: Sequence[str], written: Sequence[str], attended: Sequence[set[int]]
) -> dict[int, range]:
    """Return the first written words, side by side, that come from each seen word, where that is clear."""
    counterparts: dict[int, range] = {}
    written_places = list_punctuation(written)
    # Attention to punctuation means little; marks that both sides have equally often correspond in order.
    for mark, places in list_punctuation(seen).items():
        same = written_places.get(mark, [])
        if len(same) == len(places):
            counterparts |= {word: range(i, i + 1) for word, i in zip(places, same, strict=True)}
    for i, text in enumerate(written):
        if not has_letters(text):
            continue
        for word in attended[i]:
            if word >= 0 and has_letters(seen[word]):
                before = counterparts.get(word, range(i, i))
                if before.stop == i:
                    counterparts[word] = range(before.start, i + 1)
    return counterparts


def list_punctuation(words: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of each word without letters."""
    places = defaultdict[str, list[int]](list)
    for i, word in enumerate(words):
        if not has_letters(word):
            places[word].append(i)
    return dict(places)
