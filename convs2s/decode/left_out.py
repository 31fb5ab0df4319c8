"""Characters that the model never saw are left out of what it translates; `put_back` puts them back.

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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from convs2s.text.vocabulary.codec import Codec
from convs2s.text.words.characters import SENTENCE_ENDS, combines, has_letters, is_accent, is_letter
from convs2s.text.words.literals import Hidden, show_literals
from convs2s.text.words.places import locate_words
from convs2s.text.words.tokenization import OBJECT

PAUSES = frozenset(",;:，、")
PUNCTUATION = {*SENTENCE_ENDS, *PAUSES}
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
class SourceLine:
    """A line to translate.

    Attributes:
        seen: the words that the model sees.
        left_out: the rest of the line, in order.
        unknown: number of characters that the model never saw.
        hidden: the text that each `OBJECT` of the line replaces, in order; empty if none replaces any.
        raised: the indices in `seen` of the words that were in capitals, if the model sees them lowered; in a
            line in capitals, of all words.
    """

    seen: list[str]
    left_out: list[LeftOut] = field(default_factory=list)
    unknown: int = 0
    hidden: list[Hidden] = field(default_factory=list)
    raised: frozenset[int] = frozenset()

    @property
    def is_raised(self) -> bool:
        """Whether the whole line was in capitals, and the model sees it lowered."""
        return bool(self.raised) and len(self.raised) == len(self.seen)

    @property
    def words(self) -> list[str]:
        """The words of the whole line, where what was left out is words of its own."""
        hidden = iter(self.hidden)
        return [show_literals(word, hidden) for word in self.words_with_objects]

    @property
    def words_with_objects(self) -> list[str]:
        """The words of the whole line, with an `OBJECT` in place of each hidden text."""
        words = list[str]()
        start = 0
        for item in self.left_out:
            words += [*self.seen[start : item.before], *item.text.split()]
            start = item.before
        return words + self.seen[start:]

    def with_literals(self, hidden: list[Hidden]) -> "SourceLine":
        """Return the same line with the texts that its objects replace, which do not count as unknown."""
        literals = sum(literal.text != OBJECT for literal in hidden)
        return replace(self, hidden=hidden, unknown=self.unknown - literals)

    def locate(self) -> tuple[list[int], list[int]]:
        """Return the indices in `words` of the words that the model sees, and of where each run begins."""
        seen, runs = list[int](), list[int]()
        added = 0  # words that were left out so far
        for item in self.left_out:
            seen += [word + added for word in range(len(seen), item.before)]
            runs.append(item.before + added)
            added += len(item.text.split())
        return seen + [word + added for word in range(len(seen), len(self.seen))], runs


def read_source(line: str, tokenize: Callable[[str], list[str]], codec: Codec) -> SourceLine:
    """Return the words of a line that the model sees, and what is left out of it.

    The line is split into words without what is left out: what follows a word decides whether a period
    belongs to it, and what precedes it whether a sentence begins.
    """
    words = tokenize(line)
    if OBJECT not in line and codec.has_seen("".join(words)):
        return SourceLine(words)

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
        return SourceLine(tokenize(line))
    kept, runs = split_line(line, join_spans(line, find_unknown(line, is_known)))
    if not has_letters(kept):
        return SourceLine([], [LeftOut(line.strip())], unknown)
    seen = tokenize(kept)
    left_out = list[LeftOut]()
    starts, ends = locate_words(kept, seen)
    for place, run in runs:
        before = bisect_left(starts, place)
        is_inside = before > 0 and ends[before - 1] > place
        left_out.append(replace(run, before=before, is_inside=is_inside))
    return SourceLine(seen, left_out, unknown)


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
        elif not last or last in SENTENCE_ENDS:  # a sentence begins
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
