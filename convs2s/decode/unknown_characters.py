"""Characters that the model never saw: left out of what it translates, and put back into the translation.

An emoji or a letter of another script would be `<unk>`, an entry that pieces of the training text never
needed, so that its embedding is random: it takes neighboring words or the next sentence with it. Without such
characters the model translates what surrounds them as if they were not there. A word with unknown letters,
a name or a foreign word, is left out whole and copied, as unknown-word replacement does (§4.3); other words
lose only their unknown characters.
"""

import functools
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from convs2s.decode.translations import Hypothesis, PutBack
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.words.tokenization import OBJECT

ENDS = frozenset(".!?…。！？")
PAUSES = frozenset(",;:，、")
PUNCTUATION = ENDS | PAUSES
NEARBY = 30
"""Characters within which a word is looked for, as the tokenizer may have rewritten those before it."""
ENCLOSING = frozenset({"()", "[]", '""', "''", "“”", "„“", "«»", "‘’", "‚‘"})


@dataclass(frozen=True)
class LeftOut:
    """A run of text that the model does not see.

    Attributes:
        text: as in the source, spaces included.
        before: index of the word, of those that the model sees, that it stands before.
        touches_left, touches_right: whether a letter or digit is next to it, without a space.
        is_inside: whether what the model sees has no word boundary here: its place is before the punctuation
            at the end of the word on its left.
    """

    text: str
    before: int = 0
    touches_left: bool = False
    touches_right: bool = False
    is_inside: bool = False


@dataclass(frozen=True)
class Source:
    """A line to translate.

    Attributes:
        seen: the words that the model sees.
        left_out: the rest of the line, in order.
        unknown: number of characters that the model never saw.
    """

    seen: list[str]
    left_out: list[LeftOut] = field(default_factory=list)
    unknown: int = 0

    @property
    def words(self) -> list[str]:
        """The words of the whole line, where what was left out is words of its own."""
        words = list[str]()
        start = 0
        for item in self.left_out:
            words += [*self.seen[start : item.before], *item.text.split()]
            start = item.before
        return words + self.seen[start:]

    def locate(self) -> tuple[list[int], list[int]]:
        """Return the indices in `words` of the words that the model sees, and of where each run begins."""
        seen, runs = list[int](), list[int]()
        added = 0  # words that were left out so far
        for item in self.left_out:
            seen += [word + added for word in range(len(seen), item.before)]
            runs.append(item.before + added)
            added += len(item.text.split())
        return seen + [word + added for word in range(len(seen), len(self.seen))], runs


def read_source(line: str, tokenize: Callable[[str], list[str]], codec: Codec) -> Source:
    """Return the words of a line that the model sees, and what is left out of it.

    The line is split into words without what is left out: what follows a word decides whether a period
    belongs to it, and what precedes it whether a sentence begins.
    """
    words = tokenize(line)
    if OBJECT not in line and codec.has_seen("".join(words)):
        return Source(words)

    @functools.cache
    def is_known(character: str) -> bool:
        if character == OBJECT:  # no text, also if the training text had some
            return False
        # The tokenizer may write it as another, or drop it.
        return codec.has_seen(character) or codec.has_seen("".join(tokenize(character)))

    # What looks the same may be known: text from macOS has two characters for é, from a word processor other
    # spaces, which some tokenizers keep.
    line = unicodedata.normalize("NFC", line)
    line = re.sub(r"[^\S ]", lambda space: space[0] if codec.has_seen(space[0]) else " ", line)
    unknown = sum(not is_known(character) for character in line)
    if unknown == 0:
        return Source(tokenize(line))
    kept, runs = split_line(line, join_spans(line, find_unknown(line, is_known)))
    if not has_letters(kept):
        return Source([], [LeftOut(line.strip())], unknown)
    seen = tokenize(kept)
    left_out = list[LeftOut]()
    starts, ends = locate_words(kept, seen)
    for place, run in runs:
        before = bisect_left(starts, place)
        is_inside = before > 0 and ends[before - 1] > place
        left_out.append(replace(run, before=before, is_inside=is_inside))
    return Source(seen, left_out, unknown)


def locate_words(text: str, words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return where each word starts and ends in a text, which the tokenizer may have rewritten.

    A word that is not found, such as an escaped quotation mark, counts as one character; the next word that
    is found puts this right.
    """
    starts, ends = list[int](), list[int]()
    position = 0  # where the last word ends
    lowered = text.lower() if len(text.lower()) == len(text) else text
    for word in words:
        while text[position : position + 1].isspace():
            position += 1
        nearby = NEARBY if has_letters(word) else 0
        at = lowered.find(word.lower(), position, position + len(word) + nearby)
        starts.append(min(position if at < 0 else at, len(text)))
        ends.append(min(starts[-1] + (1 if at < 0 else len(word)), len(text)))
        position = ends[-1]
    return starts, ends


def find_unknown(line: str, is_known: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part of a line that the model cannot see, in order.

    That is a word with unknown letters, or a run of other unknown characters and what combines with them.
    """
    for chunk in re.finditer(r"\S+", line):
        text = chunk[0]
        first = chunk.start()
        unknown = {i for i, character in enumerate(text) if not is_known(character)}
        if any(is_letter(text[i]) or is_accent(text, i) for i in unknown):
            inner = [i for i, character in enumerate(text) if i in unknown or is_letter(character)]
            yield first + inner[0], first + inner[-1] + 1
            continue
        end = 0
        for start in sorted(unknown):
            if start < end:
                continue
            end = start + 1
            while end < len(text) and (end in unknown or combines(text[end])):
                end += 1
            yield first + start, first + end


def join_spans(line: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join the spans of a line between which there is nothing, or only white space and a comma."""
    joined = list[tuple[int, int]]()
    for start, end in spans:
        if joined:
            last_start, last_end = joined[-1]
            if re.fullmatch(r"\s*,?\s*", line[last_end:start]):
                joined[-1] = (last_start, end)
                continue
        joined.append((start, end))
    return joined


def split_line(line: str, spans: Iterable[tuple[int, int]]) -> tuple[str, list[tuple[int, LeftOut]]]:
    """Return the text of a line without some spans, and each of these with its place in that text.

    Punctuation that makes no sense without what is left out goes with it.
    """
    runs = list[tuple[int, LeftOut]]()
    kept = ""
    position = 0  # in the line, of what is neither kept nor left out yet
    for start, end in spans:
        kept += line[position:start]
        text = line[start:end]
        position = end
        if kept[-1:] + line[position : position + 1] in ENCLOSING:
            text = kept[-1] + text + line[position]
            kept = kept[:-1]
            position += 1
        last = kept.rstrip()[-1:]
        if last in PAUSES and line[position : position + 1] in PUNCTUATION:  # of "Tom, Łukasz, and I"
            comma = kept.rindex(last)
            text = kept[comma:] + text
            kept = kept[:comma]
        elif not last or last in ENDS:  # a sentence begins
            while line[position : position + 1] in PUNCTUATION:
                text += line[position]
                position += 1
        following = line[position : position + 1]
        touches_left = is_letter(kept[-1:])
        touches_right = is_letter(following)
        if touches_left and touches_right:
            kept += " "
        elif not following.strip() or following in PUNCTUATION:
            kept = kept.rstrip()
        if not kept:  # the text that is kept does not begin with spaces
            while line[position : position + 1].isspace():
                position += 1
        runs.append((len(kept), LeftOut(text, touches_left=touches_left, touches_right=touches_right)))
    return kept + line[position:], runs


def put_back_all(
    sources: Iterable[Source],
    n_best_lists: Iterable[list[Hypothesis]],
    codec: Codec,
    restore_case: Callable[[list[str]], list[str]] = list,
) -> Iterator[list[Hypothesis]]:
    """Yield the hypotheses of what the model saw of each line as those of the whole line."""
    for source, hypotheses in zip(sources, n_best_lists, strict=True):
        yield [put_back(source, hypothesis, codec, restore_case) for hypothesis in hypotheses]


def put_back(
    source: Source,
    hypothesis: Hypothesis,
    codec: Codec,
    restore_case: Callable[[list[str]], list[str]] = list,
    prefix: Source | None = None,
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
        prefix = Source([])
    if not source.left_out and not prefix.left_out:
        return hypothesis
    written = restore_case(hypothesis.words)
    counterparts = find_counterparts(source.seen, written, attend_words(hypothesis, codec))
    origins, first_words = source.locate()
    prefix_places, _ = prefix.locate()
    draft = Draft(list(prefix.words), prefix_places)
    prefix_text = " ".join(prefix.words)
    for item, first_word in zip(source.left_out, first_words, strict=True):
        if item.text not in prefix_text:
            place = find_place(item, source.seen, written, counterparts)
            draft.write(written[len(draft.places) : place])
            draft.put(item, first_word)
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
    )


@dataclass
class Draft:
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

    def write(self, words: Iterable[str]) -> None:
        """Add words of the model's."""
        for word in words:
            if self._joins_next and has_letters(word):
                self.words[-1] += word
            else:
                self.words.append(word)
            self._joins_next = False
            self.places.append(len(self.words) - 1)

    def put(self, item: LeftOut, source_word: int) -> None:
        """Add what was left out, attached as in the source.

        Args:
            source_word: index of its first word.
        """
        last = len(self.words) - 1
        is_put_back = bool(self.put_back) and self.put_back[-1].word == last  # wholly or in part
        follows_model = bool(self.places) and self.places[-1] == last and not is_put_back
        tail = ""
        if item.is_inside and follows_model:
            self.words[-1], tail = split_punctuation(self.words[-1])
        joins_last = item.touches_left and follows_model and has_letters(self.words[-1])
        for i, text in enumerate(item.text.split()):
            if i == 0 and (joins_last or self._joins_next):
                self.words[-1] += text
            else:
                self.words.append(text)
            self.put_back.append(PutBack(len(self.words) - 1, source_word + i, text))
        self.words[-1] += tail
        self._joins_next = item.touches_right


def attend_words(hypothesis: Hypothesis, codec: Codec) -> list[set[int]]:
    """Return, for each word of a hypothesis, the source words that its tokens attend to most."""
    attended: list[set[int]] = [set() for _ in hypothesis.words]
    owners = codec.word_of_entry(hypothesis.tokens[:-1])
    for source, word in zip(hypothesis.sources, owners, strict=False):  # EOS has a source but no word
        if word >= 0:
            attended[word].add(source)
    return attended


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


def split_punctuation(word: str) -> tuple[str, str]:
    """Return a word without the punctuation at its end, and that; the word alone if it is nothing else."""
    end = max((i + 1 for i, character in enumerate(word) if is_letter(character)), default=len(word))
    return word[:end], word[end:]


def has_letters(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return any(map(is_letter, text))


def is_letter(character: str) -> bool:
    """Return whether a character is a letter, or a digit of any script."""
    return character.isalpha() or character.isdecimal()


def is_accent(text: str, place: int) -> bool:
    """Return whether the character at a place combines with a letter before it."""
    return place > 0 and combines(text[place]) and is_letter(text[place - 1])


def combines(character: str) -> bool:
    """Return whether a character belongs to the one before: an accent, a variation selector, a joiner."""
    return unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
