"""What the page shows besides the translation: models, hypotheses with scores, replaced words, attention."""

import re
from collections.abc import Sequence
from typing import Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel, Field

from convs2s.package.layer_attention import LayerAttention
from convs2s.package.translator import Translation
from convs2s.serve.pairs import Pair
from convs2s.serve.requests import Refusal, TextRequest, body_schema, parse
from convs2s.serve.service import Service
from convs2s.text.words.tokenization import Tokenizer


class Model(BaseModel):
    """What is known about the model of a language pair."""

    source: str
    target: str
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


class Weights(BaseModel):
    """The attention of one decoder layer."""

    layer: int = Field(description="From 1 at the bottom.")
    weights: list[list[float]] = Field(description="A row per target token, which sums to 1 over the source.")


class Attended(BaseModel):
    """The attention while a line was translated; EOS is the last token of both sides."""

    source: list[str]
    target: list[str]
    layers: list[Weights] = Field(description="Only the layers that attend.")


def add_insight(app: FastAPI, service: Service) -> None:
    """Add the routes that LibreTranslate does not have."""

    @app.get("/models")
    async def models() -> list[Model]:
        """List the models with what is known about them."""
        return [describe_pair(pair) for pair in service.pairs]

    @app.post("/n-best", openapi_extra=body_schema(TextRequest))
    async def n_best(request: Request) -> list[Line]:
        """Translate a text; for each line, return all hypotheses of the beam, with scores."""
        asked = await parse_single(request)
        [lines] = await service.translate(asked, request)
        pair, sources = service.pairs.find(asked.source, asked.target), asked.texts[0].split("\n")
        return [
            Line(
                source=source,
                rare=pair.rarity.is_rare(pair.translator.source.tokenize(source)),
                hypotheses=[describe(found, pair.translator.target) for found in ranked],
            )
            for source, ranked in zip(sources, lines, strict=True)
        ]

    @app.post("/attention", openapi_extra=body_schema(TextRequest))
    async def attention(request: Request) -> Attended:
        """Translate one line; return what each decoder layer attended to (§3.3)."""
        asked = await parse_single(request)
        service.check_size(asked.texts)
        pair, line = service.pairs.find(asked.source, asked.target), asked.texts[0].strip()
        if "\n" in line or not pair.translator.source.tokenize(line):
            raise Refusal(400, "Invalid request: expected one line of text in q.")
        if pair.members > 1:
            raise Refusal(400, f"{asked.source}-{asked.target} is an ensemble of {pair.members} models; "
                          "attention is shown for single models.")  # fmt: skip
        [found] = await service.work(pair, pair.attend, [line], request)
        return round_weights(found)

    async def parse_single(request: Request) -> TextRequest:
        asked = await parse(request, TextRequest, service.limits.body_bytes)
        service.check_key(request, asked.api_key)
        if len(asked.texts) != 1:
            raise Refusal(400, f"Invalid request: expected one text in q, found {len(asked.texts)}.")
        return asked


def describe_pair(pair: Pair) -> Model:
    """Return what is known about a pair's model, or the first of its ensemble."""
    facts = pair.translator.facts
    name, summary, examples = f"{pair.source}-{pair.target}", "", list[str]()
    if facts is not None:
        name, summary = facts.name, facts.summary()
        examples = [source for source, _ in facts.examples]
    if pair.members > 1:
        summary = f"Ensemble of {pair.members} models{summary and ', the first: '}{summary}"
    return Model(source=pair.source, target=pair.target, name=name, summary=summary, examples=examples)


def describe(found: Translation, tokenizer: Tokenizer) -> Alternative:
    """Return a translation in the API's format."""
    spans = find_spans(found.text, [tokenizer.detokenize([word]) for word in found.words])
    replaced = [
        Replaced(start=spans[one.word][0], end=spans[one.word][1], source_word=one.source_word, how=one.how)
        for one in found.replacements
    ]
    score, likelihood = round(found.score, 4), round(found.log_likelihood, 4)
    return Alternative(text=found.text, score=score, log_likelihood=likelihood, replaced=replaced)


def find_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of each word in detokenized text; an empty span if the word is not there.

    Detokenization moves spaces and may change case, but keeps the order of words.
    """
    found, position = list[tuple[int, int]](), 0
    for word in words:
        match = re.compile(re.escape(word), re.IGNORECASE).search(text, position)
        found.append(match.span() if match else (position, position))
        position = found[-1][1]
    return found


def round_weights(found: LayerAttention) -> Attended:
    """Return attention in the API's format, rounded to three decimals."""
    layers = [
        Weights(layer=number, weights=layer.astype(float).round(3).tolist())
        for number, layer in zip(found.numbers, found.layers, strict=True)
    ]
    return Attended(source=found.source, target=found.target, layers=layers)
