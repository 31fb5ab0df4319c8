"""HTML in, HTML out: a page's sentences are translated, and its tags put around what they were around."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from convs2s.decode.links import find_counterparts, list_owners
from convs2s.decode.sampling import Sampling
from convs2s.html.characters import is_translatable
from convs2s.html.draft import Traced, TranslatedSentence, Word
from convs2s.html.inline_tags import write_segment
from convs2s.html.segments import BREAK, Segment, read_page
from convs2s.package.translator import Texts, Translation, Translator, as_texts
from convs2s.text.vocabulary.segmentation import WORD_MARK
from convs2s.text.words.characters import has_letters
from convs2s.text.words.places import locate_words
from convs2s.text.words.tokenization import OBJECT

WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana and Han."""


class HtmlPage:
    """A page, or a part of one.

    Args:
        split: returns the sentences of a text, each with the white space that follows it.
        target: language of the translation.

    Attributes:
        sentences: to translate, with an `OBJECT` in place of everything that stays as it is.
    """

    def __init__(self, page: str, split: Callable[[str], Sequence[str]], target: str) -> None:
        self._target = target
        self._parts = read_page(page)
        self._spans = list[list[tuple[int, int]]]()  # of each segment
        self.sentences = list[str]()
        for segment in list_segments(self._parts):
            self._spans.append(list(find_sentences(segment.text, split)))
            self.sentences += [segment.text[start:stop] for start, stop in self._spans[-1]]

    def write(self, translations: Sequence[Traced], on_emptied: Callable[[int], object] | None = None) -> str:
        """Return the page with the translations of its sentences; `on_emptied` as in `write_segment`."""
        following = iter(translations)
        spans = iter(self._spans)

        def write_parts(parts: Sequence[str | Segment]) -> str:
            return "".join(part if isinstance(part, str) else write_translated(part) for part in parts)

        def write_translated(segment: Segment) -> str:
            sentences = [TranslatedSentence(start, stop, next(following)) for start, stop in next(spans)]
            inlines = [
                replace(inline, opening=write_parts(inline.parts)) if inline.parts else inline
                for inline in segment.inlines
            ]
            return write_segment(replace(segment, inlines=inlines), sentences, self._target, on_emptied)

        return write_parts(self._parts)


@dataclass(frozen=True)
class TranslatedPage:
    """A page with the translations of its sentences.

    Attributes:
        translations: of each sentence, best first; at least one.
    """

    page: HtmlPage
    translations: Sequence[Sequence[Traced]]

    @property
    def unknown_characters(self) -> int:
        """Number of the page's characters that the model never saw."""
        return sum(best.unknown_characters for best, *_ in self.translations)

    @property
    def emptied_elements(self) -> int:
        """Number of the inline elements, such as links, that had a word and have none in `of_rank(0)`."""
        return self._best[1]

    def of_rank(self, rank: int) -> str:
        """Return the page in which each sentence's translation has this rank, from 0, or its last."""
        if rank == 0:
            return self._best[0]
        return self.page.write([ranked[min(rank, len(ranked) - 1)] for ranked in self.translations])

    @functools.cached_property
    def _best(self) -> tuple[str, int]:
        """The page with the best translations, and the number of its emptied elements."""
        emptied = list[int]()
        page = self.page.write([best for best, *_ in self.translations], emptied.append)
        return page, sum(emptied)


def list_segments(parts: Iterable[str | Segment]) -> Iterator[Segment]:
    """Yield the segments of a page, each before those of the elements in it that are not seen."""
    for part in parts:
        if isinstance(part, Segment):
            yield part
            for inline in part.inlines:
                yield from list_segments(inline.parts)


def find_sentences(text: str, split: Callable[[str], Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each sentence of a segment that has letters, without white space."""
    position = 0
    for line in text.split(BREAK):
        for piece in split(line):
            if is_translatable(piece):
                start = position + len(piece) - len(piece.lstrip())
                yield start, position + len(piece.rstrip())
            position += len(piece)
        position += len(BREAK)


def translate_html(
    translator: Translator,
    pages: Texts,
    *,
    sampling: Sampling | None = None,
    split_sentences: bool | None = None,
    on_done: Callable[[int], object] | None = None,
) -> Texts:
    """Return the translation of a page of HTML, or of each of several; parts of pages are pages, too.

    Text is translated, sentence by sentence, and its inline tags go where attention says that their words
    went. All else stays as it is, character by character: attributes, comments, scripts, `<pre>`, `<code>`
    and what has translate="no".

    Args:
        sampling, on_done: as in `Translator.translate_n_best`; the number is one of sentences.
        split_sentences: as in `Translator.translate`.

    Raises:
        ValueError: if the model's scores are not numbers.
    """
    read = [read_html(translator, page, split_sentences) for page in as_texts(pages)]
    sentences = [sentence for page in read for sentence in page.sentences]
    n_best_lists = translator.translate_n_best(sentences, sampling=sampling, on_done=on_done)
    traced = iter(trace_best(translator, sentences, n_best_lists))
    written = [page.write([next(traced) for _ in page.sentences]) for page in read]
    return written[0] if isinstance(pages, str) else written


def read_html(translator: Translator, page: str, split_sentences: bool | None = None) -> HtmlPage:
    """Return a page for a translator; `split_sentences` as in `translate_html`."""
    [page] = as_texts(page)
    splits = translator.splits_sentences if split_sentences is None else split_sentences
    return HtmlPage(page, translator.split if splits else lambda text: [text], translator.target.language)


def trace_best(
    translator: Translator, sentences: Sequence[str], n_best_lists: Sequence[Sequence[Translation]]
) -> list[Traced]:
    """Return the best translation of each sentence with the origins of its words."""
    return [
        trace(translator, sentence, best)
        for sentence, (best, *_) in zip(sentences, n_best_lists, strict=True)
    ]


def trace(translator: Translator, sentence: str, translation: Translation) -> Traced:
    """Return a translation with the places in the sentence that its words come from."""
    words = translator.read(sentence)[0].words
    starts, stops = locate_words(sentence, words)
    # A word that is not found, because the tokenizer has rewritten it, may seem to begin at the end.
    last = len(sentence) - 1
    middles = [min((start + stop) // 2, last) for start, stop in zip(starts, stops, strict=True)]
    links: list[set[int]] = [set() for _ in translation.words]
    for source, target in translator.align(translation):
        links[target].add(source)
    origins = [
        [middles[word] for word in sorted(linked) if has_letters(words[word])] if has_letters(written) else []
        for written, linked in zip(translation.words, links, strict=True)
    ]
    # Attention to punctuation means little; marks that both sides have equally often correspond.
    for word, written_words in find_counterparts(words, translation.words, links).items():
        if not has_letters(words[word]):
            origins[written_words.start] = [middles[word]]
    spans = zip(*locate_words(translation.text, translation.words), origins, strict=True)
    traced = [Word(*span) for span in spans]
    if WITHOUT_SPACES.search(sentence) or WITHOUT_SPACES.search(translation.text):
        traced = trace_pieces(translator, sentence, translation, traced)
    unknown_characters = translation.unknown_characters - sentence.count(OBJECT)
    return Traced(translation.text, traced, max(0, unknown_characters))


def trace_pieces(
    translator: Translator, sentence: str, translation: Translation, words: Sequence[Word]
) -> list[Word]:
    """Return the words of a translation with the places of the pieces that theirs come from.

    Where a script has no spaces, a tokenizer may take a whole sentence for one word. Such words are replaced
    by their pieces.
    """
    source = translator.read(sentence)[0]
    spans = list(zip(*locate_words(sentence, source.words), strict=True))
    in_words, _ = source.locate()
    middles = list[int | None]()  # of the source's pieces, if they have letters
    for seen, i in zip(source.seen, in_words, strict=True):
        start, stop = spans[i]
        for piece in cut_word(sentence, start, stop, translator.words.source.pieces([seen])):
            middles.append(sum(piece) // 2 if has_letters(sentence[slice(*piece)]) else None)
    owners = list_owners(translation.tokens, translator.words.target, translation.places)
    tokens_of: list[list[int]] = [[] for _ in words]
    for token, owner in enumerate(owners):
        if owner >= 0:
            tokens_of[owner].append(token)
    traced = list[Word]()
    for word, own_tokens, written in zip(words, tokens_of, translation.words, strict=True):
        own_pieces = [translation.tokens[token] for token in own_tokens]
        pieces = cut_word(translation.text, word.start, word.stop, own_pieces)
        places = [middles[translation.source_pieces[token]] for token in own_tokens]
        if len({*pieces}) > 1:
            traced += [
                Word(
                    *piece,
                    [place] if place is not None and has_letters(translation.text[slice(*piece)]) else [],
                )
                for piece, place in zip(pieces, places, strict=True)
            ]
        elif has_letters(written) and any(place is not None for place in places):
            traced.append(word._replace(origins=[place for place in places if place is not None]))
        else:
            traced.append(word)
    return traced


def cut_word(text: str, start: int, stop: int, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each piece of a word is if its script has no spaces; else, for each, where the word is."""
    if not WITHOUT_SPACES.search(text, start, stop):
        return [(start, stop)] * len(pieces)
    spans = []
    for piece in pieces:
        written = piece.replace(WORD_MARK, "")
        found = text.find(written, start, stop)  # -1 for a piece that is a byte
        if found >= 0:
            start = found
            spans.append((start, start + len(written)))
        else:
            spans.append((start, start))
        start = spans[-1][1]
    return spans
