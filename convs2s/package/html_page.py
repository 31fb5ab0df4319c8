"""HTML in, HTML out: a page's sentences are translated, and its tags put around what they were around."""

from collections.abc import Callable, Iterator, Sequence

from convs2s.decode.unknown_characters import find_counterparts, has_letters, locate_words
from convs2s.package.inline_tags import Sentence, Traced, Word, write_segment
from convs2s.package.translator import Translation, Translator
from convs2s.text.html import BREAK, Segment, is_translatable, read_page


class HtmlPage:
    """A page, or a part of one.

    Args:
        split: returns the sentences of a text, each with the white space that follows it.

    Attributes:
        sentences: to translate; in them, `OBJECT` stands for what stays as it is.
    """

    def __init__(self, page: str, split: Callable[[str], Sequence[str]]) -> None:
        self._parts = read_page(page)
        self._spans = [
            list(find_sentences(part.text, split)) if isinstance(part, Segment) else []
            for part in self._parts
        ]
        self.sentences = [
            part.text[start:stop]
            for part, spans in zip(self._parts, self._spans, strict=True)
            if isinstance(part, Segment)
            for start, stop in spans
        ]

    def write(self, translations: Sequence[Traced]) -> str:
        """Return the page with the translations of its sentences."""
        following = iter(translations)
        written = []
        for part, spans in zip(self._parts, self._spans, strict=True):
            if isinstance(part, str):
                written.append(part)
            else:
                sentences = [Sentence(start, stop, next(following)) for start, stop in spans]
                written.append(write_segment(part, sentences))
        return "".join(written)


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


def trace(translator: Translator, sentence: str, translation: Translation) -> Traced:
    """Return the text of a translation with the places in the sentence that its words come from."""
    words = translator.read(sentence)[0].words
    starts, stops = locate_words(sentence, words)
    middles = [(start + stop) // 2 for start, stop in zip(starts, stops, strict=True)]
    links: list[set[int]] = [set() for _ in translation.words]
    for source, target in translator.align(translation):
        links[target].add(source)
    origins = [
        [middles[word] for word in sorted(linked) if has_letters(words[word])] if has_letters(written) else []
        for written, linked in zip(translation.words, links, strict=True)
    ]
    # Attention to punctuation means little.
    for word, places in find_counterparts(words, translation.words, links).items():
        if not has_letters(words[word]):
            origins[places.start] = [middles[word]]
    spans = zip(*locate_words(translation.text, translation.words), origins, strict=True)
    return Traced(translation.text, [Word(*span) for span in spans])
