"""Text in, text out: one line for one line, whatever the input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convs2s.config.translate import TranslateParams
from convs2s.decode.hypotheses import Attention, TextHypothesis
from convs2s.decode.plain_text import one_line
from convs2s.decode.unknown_replacement import Replacement, replace_unknowns
from convs2s.decode.word_translator import Found, WordTranslator, load_words
from convs2s.package.folder import TRUECASER, check_complete, check_same, read_section, read_settings
from convs2s.text.alignment.dictionary import read_dictionary
from convs2s.text.words.tokenization import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class Translation:
    """A translation of one text.

    Attributes:
        text: detokenized, on one line.
        score: log_likelihood / |y|^alpha.
        log_likelihood: in nats.
        tokens: what the model wrote, the end mark last; empty for an empty text.
        replacements: the unknown words that were replaced.
        attention: of the best translation of each text, if asked for; labels are tokens.
    """

    text: str
    score: float
    log_likelihood: float
    tokens: list[str]
    replacements: list[Replacement]
    attention: Attention | None


class Translator:
    """A model, or an ensemble, with all that turns text into text; made by `load`.

    Args:
        words: translates tokenized text.
        source: tokenizer of the source language.
        target: tokenizer of the target language.
        dictionary: source word -> target word, for unknown-word replacement; None to leave `<unk>`.
    """

    def __init__(
        self,
        words: WordTranslator,
        source: Tokenizer,
        target: Tokenizer,
        dictionary: Mapping[str, str] | None,
    ) -> None:
        self.words = words
        self.source, self.target = source, target
        self.dictionary = dictionary

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Return the best translation of each text, one line each; an empty one for an empty text.

        Texts are best given many at a time: they are sorted by length and translated in batches.
        """
        return [best.text for best, *_ in self.translate_n_best(texts)]

    def translate_n_best(
        self, texts: Sequence[str], *, keep_attention: bool = False
    ) -> list[list[Translation]]:
        """Return up to n_best translations of each text, best first, with scores; at least one."""
        # A lone surrogate is no character; UTF-8 and sentencepiece refuse it.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        found = self.words.translate([self.source.tokenize(text) for text in clean], keep_attention)
        return [
            [self._finish(one, hypothesis, rank) for rank, hypothesis in enumerate(one.sentence.hypotheses)]
            for one in found
        ]

    def _finish(self, found: Found, hypothesis: TextHypothesis, rank: int) -> Translation:
        words, replacements = hypothesis.words, list[Replacement]()
        if self.dictionary is not None:
            words, replacements = replace_unknowns(
                found.sentence.source, words, hypothesis.unknowns, self.dictionary
            )
        return Translation(
            text=one_line(self.target.detokenize(words)),
            score=hypothesis.score,
            log_likelihood=hypothesis.log_likelihood,
            tokens=hypothesis.tokens,
            replacements=replacements,
            attention=found.attention if rank == 0 else None,
        )


def load(
    folders: str | Path | Sequence[str | Path],
    device: str | None = None,
    *,
    replace: bool | None = None,
    **changes: Any,
) -> Translator:
    """Load a model folder, or several as an ensemble.

    Args:
        folders: as the stage package writes; the first says how to translate.
        device: such as cpu, cuda or cuda:1; None takes a GPU if there is one.
        replace: whether unknown words are replaced; None as packaged.
        changes: other values of the section `translate` of params.yaml, such as beam_size=1.

    Raises:
        FileNotFoundError: if a file of a model folder is missing.
        ValueError: if a file is damaged, a value is impossible, the device is not there, or the members of
            an ensemble have different vocabularies or tokenization.
    """
    paths = [Path(folders)] if isinstance(folders, str | Path) else [Path(folder) for folder in folders]
    if not paths:
        raise ValueError("no model folder was given; wanted one, or several for an ensemble.")
    settings = read_settings(paths[0])
    for other in paths[1:]:
        check_complete(other)
        check_same(paths[0], other)
    params = changed(settings.translate, changes)
    words = load_words(paths, paths[0], paths[0] / "candidates.npz", params, device)
    source = load_tokenizer(settings.languages[0], settings.tokenize, paths[0] / TRUECASER)
    target = Tokenizer(settings.languages[1], settings.tokenize)
    wanted = settings.replace if replace is None else replace
    return Translator(words, source, target, read_dictionary(paths[0] / "dictionary.tsv") if wanted else None)


def changed(params: TranslateParams, changes: Mapping[str, Any]) -> TranslateParams:
    """Return the parameters with some values replaced, checked as in params.yaml.

    Raises:
        ValueError: naming each impossible value.
    """
    return read_section(TranslateParams, {**params.model_dump(), **changes}, "translate")
