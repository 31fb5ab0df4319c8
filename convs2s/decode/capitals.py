"""Text in capitals is lowered for the model, and its translation raised again.

Few models see lines in capitals or in title case, so their words are cut into single letters and the
translation is noise. What is lowered is decided from the line and from the model's vocabulary, not from lists
of words but for a few acronyms: USA stays, as it has no common spelling in lowercase; HOUSE is lowered, as
"house" is one piece.
"""

import itertools
import math
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from convs2s.decode.left_out import SourceLine
from convs2s.decode.links import list_owners
from convs2s.decode.translations import Hypothesis
from convs2s.ids.vocabulary import SPECIALS, UNK
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.segmentation import BYTE_PIECES
from convs2s.text.words.characters import FULL_WIDTH, LETTER, SENTENCE_ENDS, list_words
from convs2s.text.words.orthography import CAPITALIZES_NOUNS, capitalize, lower, upper

NO_LETTERS = re.compile(rf"&\w+;|&#\d+;|{SPECIALS[UNK]}")
"""What is in words but has no case: Moses' escapes, and unknown words."""
SEVERAL_LETTERS = re.compile(rf"{LETTER}{{2,}}")
"""A word of at least two letters."""
BESIDE_AMPERSAND = re.compile(r"(?<!\w)\w+(?=&(?:amp;)?\w)|(?<=\w&)\w+")
"""A part of a name such as AT&T."""
MOST_LOWERCASE = 0.1
"""Share of letters that a line in capitals may have in lowercase, as in McDONALD."""
KNOWN_LETTERS = 3
"""Letters for each piece, at least, of a word that the vocabulary knows; an acronym's pieces are shorter."""
CAPITALIZED_RANK = 5
"""How many times more frequent than the lowercase spelling one with a capital must be to be a word's own: the
start of a sentence makes "They" frequent, too."""
LONGEST_ACRONYM = 3
"""Letters of the longest words that stay as they are in a line in capitals if the vocabulary lacks them."""
SHORT_RANK = 200
"""Rank up to which an entry of two letters is a word; a rarer one, such as ny, may be the end of words."""
SHORT_ACRONYMS = {"AI", "AM", "EU", "IT", "LA", "UN", "US"}
"""Acronyms of two letters that are also words at the start of sentences, in some language."""
LONGEST_SMALL = 4
"""Letters of the longest words that title case may leave in lowercase, such as "from"."""


def find_joined(words: Sequence[str], capitals: Iterable[int], text: str) -> set[int]:
    """Return which of these words are parts of a name with an ampersand, such as AT&T, in a text."""
    names = {*BESIDE_AMPERSAND.findall(text)}
    ampersands = {i for i, word in enumerate(words) if word in ("&", "&amp;")}
    return {i for i in capitals if words[i] in names and not ampersands.isdisjoint((i - 1, i + 1))}


class CapitalsReader:
    """Lowers what a line has in capitals or title case, to what the model knows.

    Args:
        codec: of the source; its entries are sorted by frequency.
        language: of the source, an ISO 639 code.
    """

    def __init__(self, codec: Codec, language: str) -> None:
        self._codec = codec
        self._language = language
        spelled = (entry for entry in codec.vocabulary.entries if entry not in BYTE_PIECES)
        self._characters = frozenset(" ").union(*spelled)

    def rewrite_unseen(self, text: str) -> str:
        """Return a text with what the model never saw in the form that it has seen.

        Full-width characters get normal width. In words in capitals, those that no training text had, such as
        Russian Ъ, become lowercase; `lower` then lowers the rest.
        """
        if self._characters.issuperset(text):
            return text
        narrow = {code: form for code, form in FULL_WIDTH.items() if chr(code) not in self._characters}
        return SEVERAL_LETTERS.sub(lambda word: self._lower_unseen(word[0]), text.translate(narrow))

    def lower(self, source: SourceLine, text: str) -> SourceLine:
        """Return a line with the words that the model sees in the case of a normal sentence.

        - A line in capitals gets sentence case, where each word has its own case; short acronyms stay.
        - So does a line in title case; its first word stays.
        - In any other line, words in capitals that the vocabulary knows in lowercase are lowered.

        Args:
            text: the line before `rewrite_unseen`.
        """
        words = source.seen
        rewritten = self._list_rewritten(text)
        capitals = [i for i, word in enumerate(words) if is_in_capitals(word, rewritten)]
        joined = find_joined(words, capitals, text) if capitals and "&" in text else set()
        if capitals and self._is_line_in_capitals(words, capitals):
            lowered = {i for i in capitals if not self._is_acronym(words[i])} - joined
            raised = frozenset(range(len(words)))
        else:
            raised = frozenset(self._find_stressed(words, capitals) - joined)
            lowered = self._find_title_case(words) | raised
        if not lowered:
            return source
        starts = find_starts(words)
        seen = list(words)
        for i in lowered:
            own = self._find_own_case(words[i])
            first = capitalize_letters(own, self._language)
            seen[i] = first if i in starts and self._measure(first)[0] < math.inf else own
        return replace(source, seen=seen, raised=raised)

    def _lower_unseen(self, word: str) -> str:
        if not word.isupper() or self._codec.has_seen(word):
            return word
        return "".join(self._lower_unseen_letter(letter) for letter in word)

    def _lower_unseen_letter(self, letter: str) -> str:
        small = lower(letter, self._language)
        return small if self._codec.has_seen(small) and not self._codec.has_seen(letter) else letter

    def _list_rewritten(self, text: str) -> set[str]:
        """Return the words in capitals of which `rewrite_unseen` has lowered letters, as they are then."""
        if self._characters.issuperset(text):
            return set()
        words = {word: self._lower_unseen(word) for word in SEVERAL_LETTERS.findall(text)}
        return {rewritten for word, rewritten in words.items() if rewritten != word}

    def _is_line_in_capitals(self, words: Sequence[str], capitals: Sequence[int]) -> bool:
        """Return whether nearly all letters are capitals, and the model knows a word of them in lowercase."""
        letters = [letter for word in words for letter in "".join(list_words(NO_LETTERS.sub("", word)))]
        in_capitals = sum(count_cased(words[i]) for i in capitals)
        if len(letters) - in_capitals > MOST_LOWERCASE * len(letters):
            return False
        return any(self._is_known(words[i], shortest=2) for i in capitals)

    def _find_stressed(self, words: Sequence[str], capitals: Iterable[int]) -> set[int]:
        """Return which words in capitals are known in lowercase, and short ones beside them: DO NOT."""
        known = {i for i in capitals if self._is_known(words[i], shortest=KNOWN_LETTERS)}
        known |= {i for i in capitals if self._is_stressed_short(words[i])}
        short = {i for i in capitals if i not in known and self._is_known(words[i], shortest=2)}
        known |= {i for i in capitals if not NO_LETTERS.sub("", words[i]).isupper()}  # there are unseen ones
        return known | {i for i in short if {i - 1, i + 1} & known}

    def _find_title_case(self, words: Sequence[str]) -> set[int]:
        """Return which words have a capital only because the line is in title case; none if it is not.

        Most capitals must be of words that have none of their own. There must be two of these, as in "Save
        Changes", since "Brown" in "Tom Brown" is a name; beside words in lowercase more inside the line, as
        "Tomorrow is Mother's Day." is a sentence.
        """
        if self._language in CAPITALIZES_NOUNS:
            return set()
        starts = find_starts(words)
        cased = [i for i, word in enumerate(words) if count_cased(word) > 1]
        titled = {i for i in cased if is_capitalized(words[i])}
        small = [i for i in cased if words[i].islower() and words[i][0].isalpha()]  # not the 'll of We'll
        if len(titled) <= len(small) or any(len(words[i]) > LONGEST_SMALL for i in small):
            return set()
        common = {i for i in titled if self._is_common(words[i])}
        inside = common - starts
        names = titled - common - starts
        fewest = 0
        if small:
            ends = itertools.takewhile(lambda word: not list_words(word), reversed(words))
            fewest = max(len(small) + 1, 2 if {*ends}.isdisjoint(SENTENCE_ENDS) else 3)
        if not inside or len(common) < 2 or len(inside) < max(fewest, len(names)):
            return set()
        return {i for i in titled - starts if self._find_own_case(words[i]) != words[i]}

    def _is_acronym(self, word: str) -> bool:
        """Return whether a word in capitals is short and has no entry in another case."""
        letters = count_cased(word)
        if letters == 2:
            return not self._is_short_word(word)
        return 1 < letters <= LONGEST_ACRONYM and self._measure(self._find_own_case(word))[0] > 1

    def _is_short_word(self, word: str) -> bool:
        """Return whether the vocabulary has two letters as a word: frequent, or at the start of sentences."""
        small = lower(word, self._language)
        pieces, rank = self._measure(small)
        starts_sentences = self._measure(capitalize_letters(small, self._language))[0] == 1
        return starts_sentences or (pieces == 1 and rank <= SHORT_RANK)

    def _is_stressed_short(self, word: str) -> bool:
        """Return whether two letters in capitals are a word, such as NO, and have no entry as they are."""
        if count_cased(word) != 2 or word in SHORT_ACRONYMS:
            return False
        return self._measure(word)[0] > 1 and self._is_short_word(word)

    def _is_known(self, word: str, shortest: int) -> bool:
        """Return whether the vocabulary knows a word in capitals better in another case.

        Args:
            shortest: letters of the shortest word to consider.
        """
        own = self._find_own_case(word)
        pieces, _ = self._measure(own)
        letters = count_cased(word)
        if letters == 2 and not self._is_short_word(word):
            return False
        return own != word and letters >= shortest and (pieces == 1 or letters >= KNOWN_LETTERS * pieces)

    def _is_common(self, word: str) -> bool:
        """Return whether the vocabulary knows a capitalized word better in lowercase."""
        small = lower(word, self._language)
        pieces, _ = self._measure(small)
        return self._find_own_case(word) == small and (pieces == 1 or pieces < self._measure(word)[0])

    def _find_own_case(self, word: str) -> str:
        """Return a word in the case that it probably has within a sentence.

        That is the spelling with the fewest pieces; of several, the most frequent.
        """
        small = lower(word, self._language)
        pieces, rank = self._measure(small)
        choices = [(pieces, rank, small)]
        for spelling in {capitalize_letters(small, self._language), word} - {small}:
            pieces, rank = self._measure(spelling)
            is_acronym = pieces > 1 and spelling.isupper()
            choices.append((pieces, 0 if is_acronym else CAPITALIZED_RANK * rank, spelling))
        pieces, _, own = min(choices)
        return word if math.isinf(pieces) else own

    def _measure(self, word: str) -> tuple[float, int]:
        """Return the number of a word's pieces, infinite if one is unknown, and the rarest one's rank."""
        ids = self._codec.encode([word])[:-1]
        return (math.inf if UNK in ids else float(len(ids))), max(ids, default=UNK)


def raise_words(
    words: Sequence[str], source: SourceLine, hypothesis: Hypothesis, codec: Codec, language: str
) -> list[str]:
    """Return the words of a translation, with those in capitals that were so in the source.

    If only some of the source's words were lowered, a word of the translation is raised if at least half of
    its tokens attend most to them. What was put back stays as it is.

    Args:
        hypothesis: of the whole line, after `put_back`.
        codec, language: of the target.
    """
    written = list(words)
    kept: dict[int, list[str]] = {}
    for item in hypothesis.put_back:
        kept.setdefault(item.word, []).append(item.text)
    for i in range(len(words)) if source.is_raised else find_raised(source, hypothesis, codec):
        written[i] = raise_letters(words[i], language, kept.get(i, ()))
    return written


def find_raised(source: SourceLine, hypothesis: Hypothesis, codec: Codec) -> list[int]:
    """Return which words of a translation come from words of the source that were lowered."""
    if not source.raised:
        return []
    places, _ = source.locate()
    origins = {places[word] for word in source.raised}
    owners = list_owners(hypothesis.tokens, codec, hypothesis.places)
    votes: dict[int, list[bool]] = {}
    for owner, origin in zip(owners, hypothesis.sources, strict=False):  # EOS has a source but no word
        if owner >= 0:
            votes.setdefault(owner, []).append(origin in origins)
    return [word for word, own in votes.items() if 2 * sum(own) >= len(own)]


def raise_letters(word: str, language: str, kept: Iterable[str] = ()) -> str:
    """Return a word in capitals, but for some parts of it, escapes and unknown words."""
    unchanged = "|".join([*map(re.escape, kept), NO_LETTERS.pattern])
    parts = re.split(f"({unchanged})", word)
    return "".join(part if i % 2 else upper(part, language) for i, part in enumerate(parts))


def count_cased(word: str) -> int:
    """Return the number of letters that have a case."""
    return sum(letter.isupper() or letter.islower() for letter in NO_LETTERS.sub("", word))


def is_in_capitals(word: str, rewritten: Container[str]) -> bool:
    """Return whether all letters of a word are capitals, or were so before `rewrite_unseen`."""
    parts = list_words(NO_LETTERS.sub("", word))
    return bool(parts) and all(part.isupper() or part in rewritten for part in parts)


def is_capitalized(word: str) -> bool:
    """Return whether a word is in title case; of its parts, as in Well-known, only the first must be."""
    first, *others = list_words(word) or [""]
    return first.istitle() and all(part.istitle() or part.islower() for part in others)


def capitalize_letters(word: str, language: str) -> str:
    """Return a word with a capital as its first letter; there may be an opening mark before it."""
    start = next((i for i, character in enumerate(word) if character.isalpha()), 0)
    return word[:start] + capitalize(word[start:], language)


def find_starts(words: Sequence[str]) -> set[int]:
    """Return the indices of the words that sentences start with.

    Unlike for a truecaser (`with_starts`), a colon starts none, and words may have their punctuation.
    """
    starts = set[int]()
    is_start = True
    for i, word in enumerate(words):
        if is_start and list_words(word):
            starts.add(i)
            is_start = False
        is_start = is_start or word.endswith(SENTENCE_ENDS)
    return starts
