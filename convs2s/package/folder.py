"""The model folder for users: everything needed to translate text, in one self-contained folder."""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from convs2s.base.files import atomic_path, read_json, write_json
from convs2s.config.download import WORD
from convs2s.config.faults import validate
from convs2s.config.format import format_of
from convs2s.config.section import Section
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.translate import PackagedTranslateParams
from convs2s.ids.candidates import has_candidates
from convs2s.ids.vocabulary import PAD
from convs2s.model.description import CARD, DESCRIPTION, WEIGHTS, check_files, read_description, seal
from convs2s.package.facts import FACTS, Facts
from convs2s.text.vocabulary.codec import ALLOWED, CODES, FILES, IMPORTED_MODEL
from convs2s.text.words.tokenization import Tokenizer, load_tokenizer
from convs2s.text.words.truecasing import TARGET_TRUECASER, TRUECASER

OWN = {WEIGHTS, FACTS, "translate.json", "dictionary.tsv", "candidates.npz"}
"""Files in which the members of an ensemble may differ."""
NEEDED = {WEIGHTS, "tokenizer.json", "translate.json", "dictionary.tsv", "segmentation.json"}
"""Files that every model folder has."""
READ = NEEDED | OWN | {*FILES, CODES, IMPORTED_MODEL, ALLOWED, TRUECASER, TARGET_TRUECASER}
"""Files that are read if a model folder has them; any others, such as pictures for the card, are not."""

LanguageCode = Annotated[str, Field(pattern=WORD, max_length=50)]
"""Of a model that was trained here, an ISO 639 code; of an imported one, whatever it was called."""


class TokenizerFile(Section):
    """The content of a tokenizer.json."""

    source_language: LanguageCode
    target_language: LanguageCode
    tokenize: TokenizeParams


class TranslateFile(Section):
    """The content of a translate.json."""

    translate: PackagedTranslateParams
    replace: bool


@dataclass(frozen=True)
class Settings:
    """How a packaged model translates.

    Attributes:
        languages: of source and target.
        tokenize: how its training text was tokenized.
        translate: the search, and whether texts are split into sentences.
        replace: whether unknown words are replaced.
    """

    languages: tuple[str, str]
    tokenize: TokenizeParams
    translate: PackagedTranslateParams
    replace: bool


def write_package(
    folder: Path,
    model: Path,
    vocabulary: Path,
    dictionary: Path,
    candidates: Path | None,
    settings: Settings,
    card: str,
    truecasers: Path | None = None,
    facts: Facts | None = None,
) -> None:
    """Write a model folder, atomically; its model.json has the digests of the other files.

    Args:
        folder: to write; replaced if it exists.
        model: folder with model.json and weights.safetensors.
        vocabulary: folder of the stage vocabulary; all its files are copied.
        dictionary: dictionary.tsv of the stage align.
        candidates: candidates.npz of the stage candidates, left out if it is empty; None if there is no file.
        settings: how the model translates.
        card: text of README.md.
        truecasers: folder of the stage truecase, copied if the settings use truecasing.
        facts: what the card says, for programs; None to leave them out.
    """
    check_files(model, read_description(model).files, [WEIGHTS])  # otherwise damage would be sealed in
    vocabularies = vocabulary.glob("[!.]*")  # not the unfinished files of a killed DVC
    files = [model / DESCRIPTION, model / WEIGHTS, dictionary, *vocabularies]
    if candidates is not None and has_candidates(candidates):
        files.append(candidates)
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        for path in files:
            shutil.copyfile(path, temporary / path.name)
        if settings.tokenize.truecase and truecasers is not None:
            shutil.copyfile(truecasers / "source.tsv", temporary / TRUECASER)
            shutil.copyfile(truecasers / "target.tsv", temporary / TARGET_TRUECASER)
        source, target = settings.languages
        tokenize = settings.tokenize.model_dump(exclude_defaults=True)
        translate = settings.translate.model_dump(exclude_defaults=True)
        languages = {"source_language": source, "target_language": target}
        write_json(temporary / "tokenizer.json", {**languages, "tokenize": tokenize})
        write_json(temporary / "translate.json", {"translate": translate, "replace": settings.replace})
        if facts is not None:
            write_json(temporary / FACTS, asdict(facts))
        (temporary / CARD).write_text(card, encoding="utf-8", newline="\n")
        seal(temporary, format_of(settings.tokenize, settings.translate))


def read_settings(folder: Path) -> Settings:
    """Read tokenizer.json and translate.json of a model folder, and check that it is whole."""
    check_whole(folder)
    path = folder / "tokenizer.json"
    tokenizer = validate(TokenizerFile, read_json(path), f"{path} is invalid")
    path = folder / "translate.json"
    content = read_json(path)
    if isinstance(content, dict) and isinstance(content.get("translate"), dict):
        content["translate"].pop("search", None)  # of version 1.1: it is of a machine, not of a model
    search = validate(TranslateFile, content, f"{path} is invalid")
    languages = tokenizer.source_language, tokenizer.target_language
    return Settings(languages, tokenizer.tokenize, search.translate, search.replace)


def load_tokenizers(folder: Path, settings: Settings) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers of source and target, with their truecasers if the settings use truecasing."""
    source, target = settings.languages
    return (
        load_tokenizer(source, settings.tokenize, folder / TRUECASER),
        load_tokenizer(target, settings.tokenize, folder / TARGET_TRUECASER),
    )


def check_whole(folder: Path) -> None:
    """Check that a model folder has all its files, and that they have not changed since they were written.

    A file that would be read but has no digest was added later, so it is not the model's. The weights, by far
    the largest, are left to `load_model`.
    """
    if not (folder / DESCRIPTION).is_file():
        fault = f"lacks {DESCRIPTION}" if folder.is_dir() else "is not a folder"
        raise FileNotFoundError(
            f"{folder} {fault}. Expected a model folder written by the stage package, such as data/models/1."
        )
    description = read_description(folder)
    if description.padding_id != PAD:
        raise ValueError(
            f"{folder / DESCRIPTION}: expected padding_id {PAD}, as the vocabularies have it, found "
            f"{description.padding_id}. Package or fetch the folder again."
        )
    optional = READ - NEEDED - description.files.keys()
    added = sorted(name for name in optional if (folder / name).is_file())
    if added:
        raise ValueError(
            f"{folder} has {', '.join(added)}, which its model.json does not name. Expected only files that "
            "the model was packaged with: delete what was added, or package the folder again."
        )
    check_files(folder, description.files, (description.files.keys() | NEEDED) - {WEIGHTS})


def list_models(folder: Path) -> list[Path]:
    """Return a model folder, or the model folders in a folder, in order of their names."""
    if (folder / DESCRIPTION).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{DESCRIPTION}"))


def check_same(first: Path, other: Path) -> None:
    """Raise ValueError unless two models can translate together: same words, same ids."""
    first_digests = read_description(first).files
    other_digests = read_description(other).files
    for name in sorted((first_digests.keys() | other_digests.keys()) - OWN):
        if first_digests.get(name) != other_digests.get(name):
            raise ValueError(
                f"{first / name} and {other / name} differ. Expected members of an ensemble to share "
                "vocabularies and tokenization, such as the seeds of one run."
            )
