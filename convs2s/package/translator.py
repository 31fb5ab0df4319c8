"""Text in, text out: one line for one line, whatever the input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convs2s.config.translate import TranslateParams
from convs2s.decode.attention import Attention
from convs2s.decode.hypotheses import TextHypothesis
from convs2s.decode.load_words import load_words
from convs2s.decode.plain_text import one_line
from convs2s.decode.unknown_replacement import Replacement, replace_unknowns
from convs2s.decode.word_translator import WordTranslator
from convs2s.package.folder import TRUECASER, check_same, check_whole, read_section, read_settings
from convs2s.package.hub import located
from convs2s.text.alignment.dictionary import read_dictionary
from convs2s.text.words.tokenization import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class Translation:
    """A translation of one text.

    Attributes:
        text: detokenized, on one line.
        score: log_likelihood / |y|^alpha.
        log_likelihood: in nats.
        tokens: what the model wrote, EOS last; empty for an empty text.
        words: what the text was joined from.
        replacements: which of the words were unknown and replaced.
        attention: if asked for, of the best translation of each text; its labels are tokens.
    """

    text: str
    score: float
    log_likelihood: float
    tokens: list[str]
    words: list[str]
    replacements: list[Replacement]
    attention: Attention | None


class Translator:
    """A model, or an ensemble, with everything needed to translate text; made by `load`.

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

        Pass many texts at a time: they are sorted by length and translated in batches.
        """
        return [best.text for best, *_ in self.translate_n_best(texts)]

    def translate_n_best(
        self, texts: Sequence[str], *, keep_attention: bool = False
    ) -> list[list[Translation]]:
        """Return up to n_best translations of each text, best first, with scores; at least one."""
        # A lone surrogate is not a character; UTF-8 and sentencepiece refuse it.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        sources = [self.source.tokenize(text) for text in clean]
        found = self.words.translate(sources, keep_attention)
        return [
            [self._finish(source, hypothesis) for hypothesis in hypotheses]
            for source, hypotheses in zip(sources, found, strict=True)
        ]

    def _finish(self, source: Sequence[str], hypothesis: TextHypothesis) -> Translation:
        words, replacements = hypothesis.words, list[Replacement]()
        if self.dictionary is not None:
            params = self.source.params
            words, replacements = replace_unknowns(
                source, words, hypothesis.unknowns, self.dictionary, params
            )
        return Translation(
            text=one_line(self.target.detokenize(words)),
            score=hypothesis.score,
            log_likelihood=hypothesis.log_likelihood,
            tokens=hypothesis.tokens,
            words=words,
            replacements=replacements,
            attention=hypothesis.attention,
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
        folders: as the stage package writes them; the settings are those of the first. hf:OWNER/NAME is
            one on the Hugging Face Hub, hf:OWNER/NAME@REVISION a certain version of it.
        device: such as cpu, cuda or cuda:1; None takes a GPU if there is one.
        replace: whether unknown words are replaced; None as packaged.
        changes: other values of the section `translate` of params.yaml, such as beam_size=1.

    Raises:
        FileNotFoundError: if a file of a model folder is missing.
        OSError: as `located`, for a model on the Hub.
        ValueError: if a file is damaged, a value is impossible, the device does not exist, or the members
            of an ensemble have different vocabularies or tokenization.
    """
    paths = [located(folder) for folder in ([folders] if isinstance(folders, str | Path) else folders)]
    if not paths:
        raise ValueError("no model folder was given; wanted one, or several for an ensemble.")
    settings = read_settings(paths[0])
    for other in paths[1:]:
        check_whole(other)
        check_same(paths[0], other)
    params = changed(settings.translate, changes)
    words = load_words(paths, paths[0], paths[0] / "candidates.npz", params, device)
    source = load_tokenizer(settings.languages[0], settings.tokenize, paths[0] / TRUECASER)
    target = Tokenizer(settings.languages[1], settings.tokenize)
    wanted = settings.replace if replace is None else replace
    return Translator(words, source, target, read_dictionary(paths[0] / "dictionary.tsv") if wanted else None)


def changed(params: TranslateParams, changes: Mapping[str, Any]) -> TranslateParams:
    """Return the parameters with some values replaced, validated as in params.yaml.

    Raises:
        ValueError: naming each impossible value.
    """
    return read_section(TranslateParams, {**params.model_dump(), **changes}, "translate")
