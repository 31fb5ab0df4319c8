"""Which words of a translation come from which source words, by attention (§3.3)."""

from collections import defaultdict
from collections.abc import Sequence

from convs2s.text.vocabulary.codec import Codec
from convs2s.text.words.characters import has_letters


def list_owners(tokens: list[str], codec: Codec, places: Sequence[int] = ()) -> list[int]:
    """Return the index of the word that each token of a translation is of, -1 for none; EOS is left out.

    Args:
        tokens: the model's output, EOS last.
        places: where the words that the tokens spell are, if others have been put back among them.
    """
    owners = codec.word_of_entry(tokens[:-1])
    return [places[owner] if owner >= 0 else -1 for owner in owners] if places else owners


def attend_words(owners: Sequence[int], sources: Sequence[int], words: int) -> list[set[int]]:
    """Return, for each word of a translation, the source words that its tokens attend to most.

    Args:
        owners: from `list_owners`.
        sources: for each token, the source word that it attends to most; -1 for none, which is left out.
        words: number of words of the translation.
    """
    attended: list[set[int]] = [set() for _ in range(words)]
    for source, owner in zip(sources, owners, strict=False):  # EOS has a source but no word
        if min(source, owner) >= 0:
            attended[owner].add(source)
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
            if has_letters(seen[word]):
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
