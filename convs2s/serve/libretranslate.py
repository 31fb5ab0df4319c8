"""LibreTranslate's API, so that its clients work unchanged."""

from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from convs2s.package.translator import Translation
from convs2s.serve.requests import Refusal, TranslateRequest, body_schema, parse
from convs2s.serve.service import Service
from convs2s.text.languages import name


class Translated(BaseModel):
    """A response of `/translate`: strings for a text, lists for a list."""

    model_config = ConfigDict(extra="allow")
    translatedText: str | list[str]  # LibreTranslate's name
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Best first, if requested.")


class Language(BaseModel):
    """A language and the languages it can be translated to."""

    code: str
    name: str
    targets: list[str]


def add_libretranslate(app: FastAPI, service: Service) -> None:
    """Add LibreTranslate's routes."""

    @app.post("/translate", response_model_exclude_none=True, openapi_extra=body_schema(TranslateRequest))
    async def translate(request: Request) -> Translated:
        """Translate a text or a list of texts, given as JSON, as a form or in the query string."""
        asked = await parse(request, TranslateRequest, service.limits.body_bytes)
        service.check_key(request, asked.api_key)
        if asked.format != "text":
            raise Refusal(400, f"{asked.format} format is not supported; send plain text as format text.")
        found = await service.translate(asked, request)
        best = [join(lines, 0) for lines in found]
        others = [list_alternatives(lines, asked.alternatives) for lines in found]
        answer: dict[str, Any] = {"translatedText": best, "alternatives": others}
        if isinstance(asked.q, str):
            answer = {key: value[0] for key, value in answer.items()}
        if not asked.alternatives:
            del answer["alternatives"]
        if asked.source == "auto":  # assumed, not detected: hence no confidence
            language = service.pairs.find("auto", asked.target).source
            answer["detectedLanguage"] = {"language": language, "confidence": 0.0}
        return Translated(**answer)

    @app.get("/languages")
    async def languages() -> list[Language]:
        """List the languages, each with its possible targets."""
        targets = service.pairs.targets()
        return [Language(code=code, name=name(code), targets=targets[code]) for code in targets]

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Report that the server is up."""
        return {"status": "ok"}

    @app.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        """Return the settings that a page needs, under LibreTranslate's names."""
        first = next(iter(service.pairs))
        return {
            "charLimit": service.limits.characters,
            "keyRequired": bool(service.keys),
            "language": {
                "source": {"code": first.source, "name": name(first.source)},
                "target": {"code": first.target, "name": name(first.target)},
            },
        }


def list_alternatives(lines: list[list[Translation]], limit: int) -> list[str]:
    """Return further translations of a text, best first; as many as its line with the most, up to a limit."""
    ranks = range(1, 1 + min(limit, max(map(len, lines)) - 1))
    return list(dict.fromkeys(join(lines, rank) for rank in ranks))


def join(lines: list[list[Translation]], rank: int) -> str:
    """Return the translation of a text's lines, each with this rank (from 0), or its last one."""
    return "\n".join(ranked[min(rank, len(ranked) - 1)].text for ranked in lines)
