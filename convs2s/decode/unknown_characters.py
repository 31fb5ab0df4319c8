"""Characters that the model never saw: left out of what it translates, and put back into the translation.

An emoji, or a letter of another script, would be `<unk>`. Pieces of our own cover all training text, so that
this entry was never trained: it takes neighboring words, or the next sentence, with it. So the model does not
see such characters, and translates what surrounds them as if they were not there. A word with unknown
letters, a name or a foreign word, is left out whole and copied, as unknown-word replacement does (§4.3);
other words lose only their unknown characters. A sentence of which no known word remains is copied, too.
"""

import string
import unicodedata
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from convs2s.decode.translations import Hypothesis, PutBack
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.words.tokenization import Tokenizer

SENTENCE_ENDS = tuple(".?!…。？！")
ENCLOSING = frozenset({"()", "[]", '""', "''", "“”", "„“", "«»", "‘’", "‚‘"})

MADE_BY_TOKENIZER = frozenset(string.punctuation)


@dataclass(frozen=True)
class LeftOut:
    """A run of text that the model does not see.

    Attributes:
        text: as in the source, with its own spaces and joiners.
        before: index of the word, of those that the model sees, that it stands before.
        sources: indices of its words in the whole source.
        attached: whether there is no space between it and the letter or number to its left, and to its right.
        inside: whether the word to its left ends in punctuation that stood after it.
    """

    text: str
    before: int
    sources: list[int]
    attached: tuple[bool, bool]
    inside: bool


@dataclass(frozen=True)
class Source:
    """A source line.

    Attributes:
        words: of the whole line.
        seen: words that the model sees.
        origins: for each of these, the index of the word that it comes from.
        left_out: the rest, in order.
        unknown: number of characters that the model never saw.
    """

    words: list[str]
    seen: list[str]
    origins: list[int]
    left_out: list[LeftOut]
    unknown: int


@dataclass
class Part:
    """A word, or a part of one.

    Attributes:
        text: of the word.
        word: the word's index.
        seen: whether the model sees it.
        is_name: whether it is a word with unknown letters.
    """

    text: str
    word: int
    seen: bool
    is_name: bool = False


def read_source(line: str, tokenizer: Tokenizer, codec: Codec, *, of_corpus: bool = False) -> Source:
    """Return the words of a line, and those that the model sees.

    Args:
        of_corpus: whether it is a line of a corpus, which may already be tokenized, or raw text.
    """
    tokenize = tokenizer.words if of_corpus else tokenizer.tokenize
    words = tokenize(line)
    if codec.has_seen("".join(words)):
        return see_all(words)
    # What looks the same may be known: text from macOS has two characters for é.
    line = unicodedata.normalize("NFC", line)
    if tokenizer.params.tokenizer == "spaces":
        return leave_out(line, tokenize(line), codec, separates=False)
    source = leave_out(line, tokenize(line), codec)
    return split_anew(source, tokenize(join_seen(line, source)))


def see_all(words: list[str]) -> Source:
    """Return a line that the model sees whole."""
    return Source(words, words, list(range(len(words))), [], 0)


def join_seen(line: str, source: Source) -> str:
    """Return the text of a line that the model sees; as good as can be, if text left out is not found."""
    position, texts = 0, []
    for item in source.left_out:
        if (at := line.find(item.text, position)) >= 0:
            texts.append(line[position:at])
            position = at + len(item.text)
    return " ".join([*texts, line[position:]])


def split_anew(source: Source, words: list[str]) -> Source:
    """Return the source with its words as the tokenizer splits and cases them without what is left out.

    What follows a word decides whether a period belongs to it, and what precedes it whether a sentence
    begins.
    """
    letters, seen_letters = "".join(words), "".join(source.seen)
    if words == source.seen or letters.lower() != seen_letters.lower() or len(letters) != len(seen_letters):
        return source
    ends, new_ends = (list(accumulate(map(len, split))) for split in (source.seen, words))
    return replace(
        source,
        seen=words,
        origins=[source.origins[bisect_left(ends, end)] for end in new_ends],
        left_out=[
            replace(item, before=bisect_left(new_ends, ends[item.before - 1]) + 1 if item.before else 0)
            for item in source.left_out
        ],
    )


def leave_out(line: str, words: list[str], codec: Codec, *, separates: bool = True) -> Source:
    """Return the words of a line without those characters that the codec has not seen.

    Args:
        line: the text of the words.
        separates: whether punctuation marks are words.
    """
    if codec.has_seen("".join(words)):
        return see_all(words)
    if not separates:  # such words have all characters of the line
        line = " ".join(words)
    parts = [part for i, word in enumerate(words) for part in split_word(word, i, codec, separates)]
    for sentence in split_sentences([part.text for part in parts]):
        widen(parts[sentence.start : sentence.stop])
    seen, origins, left_out = list[str](), list[int](), list[LeftOut]()
    position = start = 0
    while start < len(parts):
        end, part = start + 1, parts[start]
        if part.seen:
            # Punctuation that was attached to something left out attaches to the word before that.
            closes = start > 0 and parts[start - 1].word == part.word and not has_letters(part.text)
            if closes and seen and not separates:
                seen[-1] += part.text
                left_out[-1] = replace(left_out[-1], inside=True)
            else:
                seen.append(part.text)
                origins.append(part.word)
        else:
            while end < len(parts) and not parts[end].seen:
                end += 1
            run = parts[start:end]
            text, attached, position = find_text(line, run, codec, position)
            sources = sorted({part.word for part in run})
            left_out.append(LeftOut(text, len(seen), sources, attached, inside=False))
        start = end
    unknown = sum(not codec.has_seen(character) for word in words for character in word)
    return Source(words, seen, origins, left_out, unknown)


def split_word(word: str, index: int, codec: Codec, separates: bool) -> Iterator[Part]:
    """Yield the parts of a word: a name is whole, but for punctuation where that is no word of its own."""
    if codec.has_seen(word):
        yield Part(word, index, seen=True)
        return
    is_name = any(
        not codec.has_seen(character)
        and (is_letter(character) or (is_mark(character) and has_letters(word[max(0, i - 1) : i])))
        for i, character in enumerate(word)
    )
    start = end = 0
    if is_name:
        end = len(word)
        if not separates:
            outer = "".join({c for c in word if not is_letter(c) and codec.has_seen(c)})
            start = len(word) - len(word.lstrip(outer))
            end = len(word.rstrip(outer))
        spans = [(0, start, True), (start, end, False), (end, len(word), True)]
    else:
        spans = []
        while end < len(word):
            start, seen = end, codec.has_seen(word[end])
            while end < len(word) and codec.has_seen(word[end]) == seen:
                end += 1
            spans.append((start, end, seen))
    for start, end, seen in spans:
        if start < end:
            yield Part(word[start:end], index, seen, is_name and not seen)


def widen(sentence: Sequence[Part]) -> None:
    """Leave out, too, what makes no sense without what is left out of a sentence."""
    gaps = [i for i, part in enumerate(sentence) if not part.seen]
    if not gaps:
        return
    if not any(part.seen and has_letters(part.text) for part in sentence):
        for part in sentence:
            part.seen = False
        return
    for left, right in pairwise(gaps):  # a list of unknown words, or of emoji
        between = sentence[left + 1 : right]
        if not any(has_letters(part.text) for part in between):
            for part in between:
                part.seen = False
    for i, part in enumerate(sentence):
        if not (part.is_name and not part.seen):
            continue
        before = sentence[i - 1] if i > 0 else None
        after = sentence[i + 1] if i + 1 < len(sentence) else None
        if before and after and before.text + after.text in ENCLOSING:
            before.seen = after.seen = False
        elif after and (
            after.text.startswith("'")  # Łukasz 's
            or (after.text == "," and (before is None or before.text == ","))  # Tom, Łukasz, and I
        ):
            after.seen = False
        elif before and before.text == "," and (after is None or after.text.endswith(SENTENCE_ENDS)):
            before.seen = False


def put_back_all(
    sources: Iterable[Source],
    n_best_lists: Iterable[list[Hypothesis]],
    codec: Codec,
    restore_case: Callable[[list[str]], list[str]] = list,
) -> Iterator[list[Hypothesis]]:
    """Yield the hypotheses of what the model saw of each line as those of the whole line."""
    for source, hypotheses in zip(sources, n_best_lists, strict=True):
        if source.left_out:
            yield [put_back(source, hypothesis, codec, restore_case) for hypothesis in hypotheses]
        else:
            yield hypotheses


def put_back(
    source: Source,
    hypothesis: Hypothesis,
    codec: Codec,
    restore_case: Callable[[list[str]], list[str]],
    prefix: Source | None = None,
) -> Hypothesis:
    """Return the hypothesis of what the model saw as one of the whole line.

    Each run that was left out follows the word that attends most to the word on its left. At the start or end
    of a line or a sentence, before final punctuation, and beside a comma, it stays there.

    Args:
        codec: of the target.
        restore_case: the target tokenizer's; what is put back must not change where a sentence starts.
        prefix: what the hypothesis had to begin with: it is restored, and nothing else is put into it.
    """
    begun = see_all([]) if prefix is None or not hypothesis.tokens else prefix
    first_free, begun_text = len(begun.seen), " ".join(item.text for item in begun.left_out)
    sources = [source.origins[i] if i >= 0 else -1 for i in hypothesis.sources]
    written = restore_case(hypothesis.words)
    attended: list[set[int]] = [set() for _ in written]
    owners = codec.word_of_entry(hypothesis.tokens[:-1])
    for seen_word, word in zip(hypothesis.sources, owners, strict=False):  # EOS has a source but no word
        if word >= 0:
            attended[word].add(seen_word)

    placed = [
        (max(first_free, find_place(item, source.seen, written, attended)), item)
        for item in source.left_out
        if item.text not in begun_text
    ]
    words, places, records = weave(written, placed, first_free)
    if begun.left_out:
        longer = len(begun.words) - first_free
        words[:first_free] = begun.words
        places = [*begun.origins, *(word + longer for word in places[first_free:])]
        records = [replace(record, word=record.word + longer) for record in records]
    unknowns = [
        replace(unknown, word=places[unknown.word], source=source.origins[unknown.source])
        for unknown in hypothesis.unknowns
    ]
    return replace(
        hypothesis,
        words=words,
        sources=sources,
        unknowns=unknowns,
        put_back=records,
        places=places,
        unknown_characters=source.unknown,
    )


def weave(
    written: Sequence[str], placed: Sequence[tuple[int, LeftOut]], first_free: int
) -> tuple[list[str], list[int], list[PutBack]]:
    """Return the words with what was left out, the new indices of the words, and what was put back.

    Args:
        placed: what was left out, in order, each with the index of the word that it belongs before. What is
            later in the source stays later.
        first_free: number of words at the start to which nothing is attached.
    """
    words, places, records = list[str](), list[int](), list[PutBack]()
    waiting = deque(placed)
    for position in range(len(written) + 1):
        joins_next = False  # the next written word is attached to what was put back last
        while waiting and waiting[0][0] <= position:
            _, item = waiting.popleft()
            joins_last = joins_next
            if position > first_free and places[-1] == len(words) - 1:  # the last word is a written one
                joins_last = item.attached[0] and has_letters(words[-1])
            joins_next = item.attached[1] and position < len(written) and has_letters(written[position])
            text = item.text
            if item.inside and words:
                words[-1], punctuation = split_punctuation(words[-1])
                text += punctuation
            if joins_last:
                text = words.pop() + text
            chunks = enumerate(item.text.split(), start=len(words))
            records += [PutBack(word, item.sources, chunk) for word, chunk in chunks]
            words += text.split()
        if position < len(written):
            if joins_next:
                words[-1] += written[position]
            else:
                words.append(written[position])
            places.append(len(words) - 1)
    return words, places, records


def find_place(
    item: LeftOut, seen: Sequence[str], written: Sequence[str], attended: Sequence[set[int]]
) -> int:
    """Return the index of the written word that something left out belongs before."""
    source, target = range(len(seen)), range(len(written))
    sources, targets = split_sentences(seen), split_sentences(written)
    if len(sources) == len(targets):  # else a sentence of the source has no counterpart
        number = min(sum(sentence.stop <= item.before for sentence in sources), len(sources) - 1)
        source, target = sources[number], targets[number]
    if item.before in (source.start, source.stop):
        return target.start if item.before == source.start else target.stop
    if not any(has_letters(word) for word in seen[item.before : source.stop]):  # before final punctuation
        end = target.stop
        while end > target.start and not has_letters(written[end - 1]):
            end -= 1
        return end
    if item.attached == (False, True):
        order = [*range(item.before, source.stop), *range(item.before - 1, source.start - 1, -1)]
    else:
        order = [*range(item.before - 1, source.start - 1, -1), *range(item.before, source.stop)]
    for word in order:
        if found := find_counterpart(word, source, target, seen, written, attended):
            return found[-1] + 1 if word < item.before else found[0]
    return target.stop


def find_counterpart(
    word: int,
    source: range,
    target: range,
    seen: Sequence[str],
    written: Sequence[str],
    attended: Sequence[set[int]],
) -> list[int]:
    """Return the first written words, next to each other, that come from a word; none if it is not clear."""
    if not has_letters(seen[word]):  # attention to punctuation means little
        same_source = [i for i in source if seen[i] == seen[word]]
        same_target = [i for i in target if written[i] == seen[word]]
        same = len(same_source) == len(same_target)
        return [same_target[same_source.index(word)]] if same else []
    found = [i for i in target if word in attended[i] and has_letters(written[i])]
    return found[: next((n for n, i in enumerate(found) if i != found[0] + n), len(found))]


def find_text(
    line: str, run: Sequence[Part], codec: Codec, position: int
) -> tuple[str, tuple[bool, bool], int]:
    """Return the text of a run in a line after a position, whether letters touch it, and where it ends.

    The tokenizer may have changed some of it, such as joiners of emoji to spaces, and quotes.
    """
    unknown = [i for i, part in enumerate(run) if not codec.has_seen(part.text)]
    # The tokenizer writes other punctuation as ASCII's, so that any other text is a surer guide.
    sure = [i for i in unknown if not MADE_BY_TOKENIZER.issuperset(run[i].text)]
    start, end, found = position, position, sure or unknown
    for i in found:
        at = line.find(run[i].text, end)
        if at < 0 or (i > found[0] and has_letters(line[end:at])):  # such as letters in other case
            return " ".join(part.text for part in run), (False, False), position
        start, end = (at if i == found[0] else start), at + len(run[i].text)
    for part in reversed(run[: found[0]]):
        before = line[position:start].rstrip()
        start = position + len(before) - count_same(part.text[::-1], before[::-1])
    while end < len(line) and unicodedata.category(line[end]) in ("Cf", "Mn", "Me"):
        end += 1
    for part in run[found[-1] + 1 :]:
        after = line[end:].lstrip()
        end = len(line) - len(after) + count_same(part.text, after)
    touches = has_letters(line[max(0, start - 1) : start]), has_letters(line[end : end + 1])
    return line[start:end], touches, end


def count_same(word: str, text: str) -> int:
    """Return how many characters at the start of a text are a word, though its punctuation may differ."""
    start = text[: len(word)].split(maxsplit=1)[:1]
    same = bool(start) and [*filter(is_letter, start[0])] == [*filter(is_letter, word)]
    if same:
        return len(start[0])
    return 1 if unicodedata.category(text[:1] or " ").startswith("P") else 0


def split_sentences(words: Sequence[str]) -> list[range]:
    """Return the sentences of a line; a run of sentence ends ends one."""
    ends = [
        i + 1
        for i, word in enumerate(words)
        if word.endswith(SENTENCE_ENDS)
        and i + 1 < len(words)
        and (has_letters(words[i + 1]) or not words[i + 1].endswith(SENTENCE_ENDS))
    ]
    return [range(start, end) for start, end in zip([0, *ends], [*ends, len(words)], strict=True)]


def split_punctuation(word: str) -> tuple[str, str]:
    """Return a word without the punctuation at its end, and that; the word alone if it is nothing else."""
    end = len(word)
    while end > 0 and not is_letter(word[end - 1]):
        end -= 1
    return (word[:end], word[end:]) if end > 0 else (word, "")


def has_letters(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return any(map(is_letter, text))


def is_letter(character: str) -> bool:
    """Return whether a character is a letter, or a digit of any script."""
    return character.isalpha() or character.isdecimal()


def is_mark(character: str) -> bool:
    """Return whether a character combines with the one before."""
    return unicodedata.category(character).startswith("M")
