"""What the page shows besides the translation: hypotheses with scores, replaced words, attention."""

from typing import Any, Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel, Field

from convs2s.package.layer_attention import LayerAttention
from convs2s.package.translator import Translation
from convs2s.serve.refusal import Refusal
from convs2s.serve.replaced_words import replaced_words
from convs2s.serve.requests import TextRequest, body_schema, parsed
from convs2s.serve.service import Service


class Replaced(BaseModel):
    """An unknown word that was replaced (§4.3)."""

    start: int = Field(description="Where the word begins in the text, in characters.")
    end: int
    source_word: str = Field(description="The source word that got the most attention.")
    how: Literal["dictionary", "copy"]


class Hypothesis(BaseModel):
    """A translation of a line."""

    text: str
    score: float = Field(description="log-likelihood / length^alpha, in nats.")
    log_likelihood: float = Field(description="In nats.")
    replaced: list[Replaced]


class Line(BaseModel):
    """A line of the text with its translations, best first."""

    source: str
    hypotheses: list[Hypothesis]


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

    @app.post("/n-best", openapi_extra=body_schema(TextRequest))
    async def n_best(request: Request) -> list[Line]:
        """Translate a text; for each line, return all hypotheses of the beam, with scores."""
        asked = await checked(request)
        tokenizer = service.pairs.find(asked.source, asked.target).translator.target
        [lines] = await service.translate(asked, request)
        sources = asked.texts[0].split("\n")
        return [
            Line(source=source, hypotheses=[hypothesis(found, tokenizer) for found in ranked])
            for source, ranked in zip(sources, lines, strict=True)
        ]

    @app.post("/attention", openapi_extra=body_schema(TextRequest))
    async def attention(request: Request) -> Attended:
        """Translate one line; return what each decoder layer attended to (§3.3)."""
        asked = await checked(request)
        service.check_size(asked.texts)
        pair, line = service.pairs.find(asked.source, asked.target), asked.texts[0].strip()
        if not line or "\n" in line:
            raise Refusal(400, "Invalid request: wanted one line of text in q.")
        if pair.members > 1:
            raise Refusal(400, f"{asked.source}-{asked.target} is an ensemble of {pair.members} models; "
                          "attention is shown for single models.")  # fmt: skip
        [found] = await service.work(pair, pair.attend, [line], request)
        return attended(found)

    async def checked(request: Request) -> TextRequest:
        asked = await parsed(request, TextRequest, service.limits.body_bytes)
        service.check_key(request, asked.api_key)
        if len(asked.texts) != 1:
            raise Refusal(400, f"Invalid request: found {len(asked.texts)} texts in q, wanted one.")
        return asked


def hypothesis(found: Translation, tokenizer: Any) -> Hypothesis:
    """Return a translation in the API's format."""
    return Hypothesis(
        text=found.text,
        score=round(found.score, 4),
        log_likelihood=round(found.log_likelihood, 4),
        replaced=[Replaced(**word) for word in replaced_words(found, tokenizer)],
    )


def attended(found: LayerAttention) -> Attended:
    """Return attention in the API's format, rounded to three decimals."""
    layers = [
        Weights(layer=number, weights=layer.astype(float).round(3).tolist())
        for number, layer in zip(found.numbers, found.layers, strict=True)
    ]
    return Attended(source=found.source, target=found.target, layers=layers)
