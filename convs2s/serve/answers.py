"""What the routes answer: translations as LibreTranslate has them, and what the page shows besides."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from convs2s.package.html_page import TranslatedPage
from convs2s.package.layer_attention import LayerAttention
from convs2s.package.translator import TranslatedText, Translation
from convs2s.serve.pairs import LanguagePair
from convs2s.text.languages import language_name

Lines = TranslatedText | TranslatedPage
"""What a request's text consists of: lines of text, or a page of HTML."""
UNKNOWN = "Number of characters that the model never saw, if any; they were copied."


class Detected(BaseModel):
    """The language of a text."""

    language: str
    confidence: float = Field(description="100 if the server has no other source language, 0 if assumed.")


class Translated(BaseModel):
    """Translations: strings for a text, lists for a list."""

    translatedText: str | list[str]  # LibreTranslate's names
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Best first, if requested.")
    detectedLanguage: Detected | list[Detected] | None = Field(None, description="If the source was auto.")
    unknownCharacters: int | None = Field(None, description=UNKNOWN)
    emptiedElements: int | None = Field(
        None, description="Number of elements of pages that had a word and have none now, if any."
    )


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
    summary: str = Field(description="What it was trained on, and its BLEU; may be empty.")
    examples: list[str] = Field(description="Test sentences to try.")


class Alternative(BaseModel):
    """A translation of a line or a sentence."""

    text: str
    score: float = Field(
        description="log-likelihood / length^alpha, in nats; of several sentences, the mean over them."
    )
    log_likelihood: float = Field(description="In nats; of several sentences, the sum over them.")


class Sentence(BaseModel):
    """A sentence with its translations, best first."""

    source: str
    hypotheses: list[Alternative]


class Line(Sentence):
    """A line of the text with its translations, best first.

    The first hypothesis of a line of several sentences has the best of each, the second the second best, or
    the last if there are fewer.
    """

    unknownCharacters: int | None = Field(None, description=UNKNOWN)
    sentences: list[Sentence] | None = Field(None, description="Each sentence, if the line has several.")


class Attended(BaseModel):
    """The attention while a line was translated (§3.3); EOS is the last token of both sides."""

    source: list[str]
    target: list[str]
    layers: dict[int, list[list[float]]] = Field(
        description="By number of the layer, from 1 at the bottom, those that attend: a row per target "
        "token, which sums to 1 over the source."
    )


def list_languages(pairs: Sequence[LanguagePair]) -> list[Language]:
    """Return all languages, by code."""
    targets: dict[str, list[str]] = {code: [] for pair in pairs for code in (pair.source, pair.target)}
    for pair in pairs:
        targets[pair.source].append(pair.target)
    return [
        Language(code=code, name=language_name(code), targets=sorted(targets[code]))
        for code in sorted(targets)
    ]


def list_alternatives(lines: Sequence[Lines], limit: int) -> list[str]:
    """Return further translations of a text, best first; as many as its sentence with the most has.

    Args:
        limit: to the number of further translations.
    """
    most = max(count_ranks(line) for line in lines) - 1  # without the best ones
    ranks = range(1, 1 + min(limit, most))
    return list(dict.fromkeys(join_translations(lines, rank) for rank in ranks))


def count_ranks(line: Lines) -> int:
    """Return the number of translations of the line's sentence with the most; at least one."""
    return max((len(ranked) for ranked in line.translations), default=1)


def join_translations(lines: Sequence[Lines], rank: int) -> str:
    """Return the translation of a text's lines, with this rank (from 0) of each of their sentences."""
    return "\n".join(line.of_rank(rank) for line in lines)


def count_unknown(lines: Sequence[Lines]) -> int | None:
    """Return the number of characters of some lines that the model never saw; None if there are none."""
    return sum(line.unknown_characters for line in lines) or None


def count_emptied(lines: Sequence[Lines]) -> int | None:
    """Return the number of elements of pages that have lost all their words; None if there are none."""
    return sum(line.emptied_elements for line in lines if isinstance(line, TranslatedPage)) or None


def describe_pair(pair: LanguagePair) -> Model:
    """Return what is known about a pair's model, or the first of its ensemble."""
    facts = pair.translator.facts
    summary = facts.summary() if facts else ""
    if pair.members > 1:
        ensemble = f"Ensemble of {pair.members} models"
        summary = f"{ensemble}, the first: {summary}" if summary else ensemble
    return Model(
        source=pair.source,
        target=pair.target,
        languages=f"{language_name(pair.source)} → {language_name(pair.target)}",
        name=facts.name if facts else str(pair),
        summary=summary,
        examples=[source for source, _ in facts.examples] if facts else [],
    )


def describe_line(source: str, line: TranslatedText) -> Line:
    """Return a line with its translations, and those of its sentences if it has several."""
    sentences = [
        Sentence(source=sentence.strip(), hypotheses=[describe_translation(item) for item in ranked])
        for sentence, ranked in zip(line.sentences, line.translations, strict=True)
    ]
    if len(sentences) == 1:
        hypotheses = sentences[0].hypotheses
    else:
        hypotheses = [describe_rank(line, rank) for rank in range(count_ranks(line))]
    return Line(
        source=source,
        hypotheses=hypotheses,
        unknownCharacters=count_unknown([line]),
        sentences=sentences if len(sentences) > 1 else None,
    )


def describe_rank(line: TranslatedText, rank: int) -> Alternative:
    """Return the translation of a line with this rank of each of its sentences; an empty line has one."""
    chosen = [ranked[min(rank, len(ranked) - 1)] for ranked in line.translations]
    scores = [translation.score for translation in chosen]
    return Alternative(
        text=line.of_rank(rank),
        score=round(sum(scores) / max(1, len(scores)), 4),
        log_likelihood=round(sum(translation.log_likelihood for translation in chosen), 4),
    )


def describe_translation(translation: Translation) -> Alternative:
    """Return a translation with its scores, rounded."""
    return Alternative(
        text=translation.text,
        score=round(translation.score, 4),
        log_likelihood=round(translation.log_likelihood, 4),
    )


def describe_attention(attention: LayerAttention) -> Attended:
    """Return attention rounded to three decimals."""
    weights = [layer.astype(float).round(3).tolist() for layer in attention.layers]
    layers = dict(zip(attention.numbers, weights, strict=True))
    return Attended(source=attention.source, target=attention.target, layers=layers)
