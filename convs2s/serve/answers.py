"""What the routes answer: translations as LibreTranslate has them, and what the page shows besides."""

import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from convs2s.package.layer_attention import LayerAttention
from convs2s.package.translator import Translation
from convs2s.serve.pairs import Pair
from convs2s.text.languages import name
from convs2s.text.words.tokenization import Tokenizer


class Translated(BaseModel):
    """Translations: strings for a text, lists for a list."""

    translatedText: str | list[str]  # LibreTranslate's names
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Best first, if requested.")
    detectedLanguage: dict[str, Any] | None = Field(None, description="Assumed, if the source was auto.")


class Language(BaseModel):
    """A language and the languages it can be translated to."""

    code: str
    name: str
    targets: list[str]


class Model(BaseModel):
    """What is known about the model of a language pair."""

    source: str
    target: str
    languages: str = Field(description="Their English names.")
    name: str = Field(description="Title of its card; the language pair if it has none.")
    summary: str = Field(description="On what it was trained, and its BLEU; may be empty.")
    examples: list[str] = Field(description="Test sentences to try.")


class Replaced(BaseModel):
    """An unknown word that was replaced (§4.3)."""

    start: int = Field(description="Where the word begins in the text, in characters.")
    end: int
    source_word: str = Field(description="The source word that got the most attention.")
    how: Literal["dictionary", "copy"]


class Alternative(BaseModel):
    """A translation of a line."""

    text: str
    score: float = Field(description="log-likelihood / length^alpha, in nats.")
    log_likelihood: float = Field(description="In nats.")
    replaced: list[Replaced]


class Line(BaseModel):
    """A line of the text with its translations, best first."""

    source: str
    rare: bool = Field(description="Whether it is unlike the training text, for example in another language.")
    hypotheses: list[Alternative]


class Attended(BaseModel):
    """The attention while a line was translated (§3.3); EOS is the last token of both sides."""

    source: list[str]
    target: list[str]
    layers: dict[int, list[list[float]]] = Field(
        description="By number of the layer, from 1 at the bottom, those that attend: a row per target "
        "token, which sums to 1 over the source."
    )


def list_languages(pairs: Sequence[Pair]) -> list[Language]:
    """Return all languages, by code."""
    targets: dict[str, list[str]] = {code: [] for pair in pairs for code in (pair.source, pair.target)}
    for pair in pairs:
        targets[pair.source].append(pair.target)
    return [Language(code=code, name=name(code), targets=sorted(targets[code])) for code in sorted(targets)]


def list_alternatives(lines: Sequence[Sequence[Translation]], limit: int) -> list[str]:
    """Return further translations of a text, best first; as many as its line with the most, up to a limit."""
    ranks = range(1, 1 + min(limit, max(map(len, lines)) - 1))
    return list(dict.fromkeys(join(lines, rank) for rank in ranks))


def join(lines: Sequence[Sequence[Translation]], rank: int) -> str:
    """Return the translation of a text's lines, each with this rank (from 0), or its last one."""
    return "\n".join(ranked[min(rank, len(ranked) - 1)].text for ranked in lines)


def describe_pair(pair: Pair) -> Model:
    """Return what is known about a pair's model, or the first of its ensemble."""
    facts = pair.translator.facts
    summary = facts.summary() if facts else ""
    if pair.members > 1:
        summary = f"Ensemble of {pair.members} models{summary and ', the first: '}{summary}"
    return Model(
        source=pair.source,
        target=pair.target,
        languages=f"{name(pair.source)} → {name(pair.target)}",
        name=facts.name if facts else str(pair),
        summary=summary,
        examples=[source for source, _ in facts.examples] if facts else [],
    )


def describe_translation(translation: Translation, tokenizer: Tokenizer) -> Alternative:
    """Return a translation with the places of its replaced words."""
    spans = find_spans(translation.text, [tokenizer.detokenize([word]) for word in translation.words])
    replaced = []
    for replacement in translation.replacements:
        start, end = spans[replacement.word]
        word, how = replacement.source_word, replacement.how
        replaced.append(Replaced(start=start, end=end, source_word=word, how=how))
    score, likelihood = round(translation.score, 4), round(translation.log_likelihood, 4)
    return Alternative(text=translation.text, score=score, log_likelihood=likelihood, replaced=replaced)


def find_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of each word in detokenized text; an empty span if the word is not there.

    Detokenization moves spaces and may change case, but keeps the order of words.
    """
    spans, position = list[tuple[int, int]](), 0
    for word in words:
        match = re.compile(re.escape(word), re.IGNORECASE).search(text, position)
        spans.append(match.span() if match else (position, position))
        position = spans[-1][1]
    return spans


def describe_attention(attention: LayerAttention) -> Attended:
    """Return attention rounded to three decimals."""
    weights = [layer.astype(float).round(3).tolist() for layer in attention.layers]
    layers = dict(zip(attention.numbers, weights, strict=True))
    return Attended(source=attention.source, target=attention.target, layers=layers)
