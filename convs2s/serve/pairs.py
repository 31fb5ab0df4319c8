"""The models that a server offers, by language pair."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fastapi import HTTPException

from convs2s.html.inline_tags import Traced
from convs2s.package.folder import read_settings
from convs2s.package.html_page import HtmlPage, read_html, trace, trace_best
from convs2s.package.layer_attention import LayerAttention, read_layers
from convs2s.package.translator import Translation, Translator, load


@dataclass(frozen=True, eq=False)
class LanguagePair:
    """A language pair with its model, or its ensemble.

    Attributes:
        source, target: language codes.
        translator: returns all hypotheses of the beam.
        members: number of models.
    """

    source: str
    target: str
    translator: Translator
    members: int

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    def split(self, line: str) -> list[str]:
        """Return a line's sentences, or the whole line if the model takes it so; none of an empty one."""
        if not line.strip():
            return []
        return self.translator.split(line) if self.translator.splits_sentences else [line]

    def translate(self, sentences: list[str]) -> list[list[Translation]]:
        """Return each sentence's hypotheses, best first."""
        return self.translator.translate_n_best(sentences)

    def read_html(self, page: str) -> HtmlPage:
        """Return a page, whose sentences `trace` translates."""
        return read_html(self.translator, page)

    def trace(self, sentences: list[str]) -> list[list[Traced]]:
        """Return each sentence's hypotheses, best first, with the origins of their words."""
        return [
            [trace(self.translator, sentence, translation) for translation in ranked]
            for sentence, ranked in zip(sentences, self.translate(sentences), strict=True)
        ]

    def trace_best(self, sentences: list[str]) -> list[list[Traced]]:
        """Return each sentence's best hypothesis, in a list, with the origins of its words."""
        return [[best] for best in trace_best(self.translator, sentences, self.translate(sentences))]

    def attend(self, lines: list[str]) -> list[LayerAttention]:
        """Return each decoder layer's attention while each line is translated; for single models only."""
        return [read_layers(self.translator.words, source.seen) for source in self.translator.read(lines)]


def find_pair(pairs: Sequence[LanguagePair], source: str, target: str) -> LanguagePair:
    """Return a pair; source `auto` is the only language that can be translated to the target."""
    languages = {language for pair in pairs for language in (pair.source, pair.target)}
    for language in (source, target):
        if language not in languages | {"auto"}:
            raise HTTPException(400, f"{language} is not supported")  # LibreTranslate's words
    fitting = [pair for pair in pairs if pair.target == target and source in (pair.source, "auto")]
    if len(fitting) != 1:
        raise HTTPException(
            400,
            f"{source}-{target} is not available; this server translates {', '.join(map(str, pairs))}. "
            "Source auto is possible only if one language has this target, as languages are not detected.",
        )
    return fitting[0]


def load_pairs(
    folders: Sequence[Path],
    device: str | None,
    beam_size: int | None,
    replace: bool | None,
    split_sentences: bool | None,
) -> list[LanguagePair]:
    """Load model folders, an ensemble if several have the same language pair; errors as `load`.

    None leaves a setting as packaged.
    """
    by_pair: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder in folders:
        by_pair[read_settings(folder).languages].append(folder)
    pairs = []
    for (source, target), paths in by_pair.items():
        packaged = read_settings(paths[0]).translate
        size = packaged.beam_size if beam_size is None else beam_size
        splits = packaged.split_sentences if split_sentences is None else split_sentences
        translator = load(paths, device, replace=replace, beam_size=size, n_best=size, split_sentences=splits)
        pairs.append(LanguagePair(source, target, translator, len(paths)))
    return pairs
