"""What was left out of a line is put back into its translation, beside what its neighbors became."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from convs2s.decode.left_out import LeftOut, SourceLine
from convs2s.decode.links import attend_words, find_counterparts, list_owners
from convs2s.decode.translations import Hypothesis, PutBack
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.words.characters import has_letters
from convs2s.text.words.literals import show_literals
from convs2s.text.words.places import split_punctuation
from convs2s.text.words.tokenization import OBJECT


def put_back(
    source: SourceLine,
    hypothesis: Hypothesis,
    codec: Codec,
    restore_case: Callable[[list[str]], list[str]] = list,
    prefix: SourceLine | None = None,
) -> Hypothesis:
    """Return the hypothesis of what the model saw as one of the whole line.

    What was left out follows the word that attends most to the word on its left. At the start or the end of a
    line, and before final punctuation, it stays there; and it stays in order.

    Args:
        codec: of the target.
        restore_case: the target tokenizer's; what is put back must not change where a sentence starts.
        prefix: what the hypothesis had to begin with: it is restored, and nothing else is put into it.
    """
    has_text = hypothesis.tokens or source.left_out
    if prefix is None or not has_text:  # an empty line is translated as one, whatever its prefix
        prefix = SourceLine([])
    if not source.left_out and not prefix.left_out:
        return hypothesis
    written = restore_case(hypothesis.words)
    owners = list_owners(hypothesis.tokens, codec)
    attended = attend_words(owners, hypothesis.sources, len(hypothesis.words))
    counterparts = find_counterparts(source.seen, written, attended)
    origins, first_words = source.locate()
    prefix_places, _ = prefix.locate()
    draft = HypothesisDraft(prefix.words_with_objects, prefix_places)
    shown = list(prefix.hidden)
    hidden = iter(source.hidden)
    prefix_text = " ".join(prefix.words)
    for item, first_word in zip(source.left_out, first_words, strict=True):
        own = list(itertools.islice(hidden, item.text.count(OBJECT)))
        if show_literals(item.text, iter(own)) not in prefix_text:
            place = find_place(item, source.seen, written, counterparts)
            draft.write(written[len(draft.places) : place])
            draft.put(item, first_word)
            shown += own
    draft.write(written[len(draft.places) :])
    return replace(
        hypothesis,
        words=draft.words,
        sources=[origins[word] if word >= 0 else -1 for word in hypothesis.sources],
        unknowns=[
            replace(unknown, word=draft.places[unknown.word], source=origins[unknown.source])
            for unknown in hypothesis.unknowns
        ],
        put_back=draft.put_back,
        places=draft.places,
        unknown_characters=source.unknown,
        hidden=shown,
    )


@dataclass
class HypothesisDraft:
    """A hypothesis into which text is put back, as far as it is written.

    Attributes:
        words: so far.
        places: the indices of the model's words among them.
        put_back: the rest of them.
    """

    words: list[str]
    places: list[int]
    put_back: list[PutBack] = field(default_factory=list)
    _joins_next: bool = False
    _ends_with_model: bool = False

    def write(self, words: Iterable[str]) -> None:
        """Add words of the model's."""
        for word in words:
            if self._joins_next and has_letters(word):
                self.words[-1] += word
            else:
                self.words.append(word)
            self._joins_next = False
            self._ends_with_model = True
            self.places.append(len(self.words) - 1)

    def put(self, item: LeftOut, source_word: int) -> None:
        """Add what was left out, attached as in the source.

        Args:
            source_word: index of its first word.
        """
        tail = ""
        if item.is_inside and self._ends_with_model:
            self.words[-1], tail = split_punctuation(self.words[-1])
        joins_last = item.touches_left and self._ends_with_model and has_letters(self.words[-1])
        for i, text in enumerate(item.text.split()):
            if i == 0 and (joins_last or self._joins_next):
                self.words[-1] += text
            else:
                self.words.append(text)
            self.put_back.append(PutBack(len(self.words) - 1, source_word + i, text))
        self.words[-1] += tail
        self._joins_next = item.touches_right
        self._ends_with_model = False


def find_place(
    item: LeftOut, seen: Sequence[str], written: Sequence[str], counterparts: Mapping[int, range]
) -> int:
    """Return the index of the written word that something left out belongs before."""
    if item.before == 0:
        return 0
    if item.before == len(seen):
        return len(written)
    if not has_letters("".join(seen[item.before :])):  # only final punctuation follows
        return max((i + 1 for i, word in enumerate(written) if has_letters(word)), default=0)
    left, right = item.before - 1, item.before
    nearest = [right, left] if item.touches_right and not item.touches_left else [left, right]
    for word in [*nearest, *range(left - 1, -1, -1)]:
        if counterpart := counterparts.get(word):
            return counterpart.stop if word < item.before else counterpart.start
    return len(written)
