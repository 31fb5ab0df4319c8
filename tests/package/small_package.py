"""A tiny model folder with weights set by formula: it loads and runs, but does not translate well."""

import json
from dataclasses import replace as change
from pathlib import Path

import torch

from convs2s.config.model import ModelParams
from convs2s.config.params import Params
from convs2s.ids.candidates import NO_CANDIDATES, write_candidates
from convs2s.ids.vocabulary import PAD
from convs2s.model.description import seal
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import save_model
from convs2s.package.facts import Facts
from convs2s.package.folder import Settings, write_package
from convs2s.text.alignment.dictionary import Entry, write_dictionary
from convs2s.text.vocabulary.codec import Codec
from tests.decode.parrot import PACKAGED, TOKENIZE, write_vocabulary
from tests.model.small import small_params

WORDS = [
    "Das", "ist", "ein", "Haus", "und", "noch", "eins", ".", "Hund", "aus", "Maus", ",", "der", "die", "das",
]  # fmt: skip
MODEL = small_params(
    embedding_size=8, output_embedding_size=8, encoder_widths=[8], encoder_kernels=[3], decoder_widths=[8],
    decoder_kernels=[3], attention=[True],
)  # fmt: skip

FACTS = Facts(
    "small en-de", ("en", "de"), "MIT", "tests", 1234, (9, 9), {}, {}, 1, {}, {"bleu": 12.34}, {},
    "test: 2 lines", [("ein Haus", "a house"), ("noch eins", "another one")],
)  # fmt: skip


def write_model(folder: Path, sizes: tuple[int, int], phase: float = 0.0) -> Path:
    """Write model.json and weights.safetensors; another phase gives other weights."""
    model = make_model(MODEL, *sizes, phase)
    save_model(folder, model, MODEL)
    return folder


def make_model(params: ModelParams, source_size: int, target_size: int, phase: float = 0.0) -> Seq2Seq:
    model = Seq2Seq(params, source_size, target_size, padding_id=PAD, dropout=0.0)
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            n = torch.arange(parameter.numel(), dtype=torch.float64)
            parameter.copy_(torch.sin(n * 1.37 + i + phase).float().view_as(parameter))
    return model


def write_parts(folder: Path, phase: float = 0.0) -> tuple[Path, Path, Path, Path]:
    """Write the parts of a package: model, vocabularies, dictionary, candidates (none)."""
    vocabulary = write_vocabulary(folder / "vocabulary", WORDS, pieces=30)
    size = len(Codec.load(vocabulary, "source").vocabulary)
    dictionary = folder / "alignment" / "dictionary.tsv"
    write_dictionary(dictionary, [Entry("dog", "Hund", 3, 4)])
    candidates = folder / "candidates" / "candidates.npz"
    write_candidates(candidates, NO_CANDIDATES)
    return write_model(folder / "model", (size, size), phase), vocabulary, dictionary, candidates


def edit_settings(folder: Path, name: str, section: str, **changes: object) -> Path:
    """Change values of a section in a JSON file of a model folder, and its digests; return the folder."""
    content = json.loads((folder / name).read_text(encoding="utf-8"))
    content[section] |= changes
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    seal(folder)
    return folder


def write_small_package(
    folder: Path, phase: float = 0.0, *, languages: tuple[str, str] = ("en", "de"), replace: bool = False
) -> Path:
    """Write a model folder and return it."""
    settings = Settings(languages, TOKENIZE, PACKAGED, replace)
    facts = change(FACTS, name=f"small {'-'.join(languages)}", languages=languages, seed=int(phase))
    write_package(folder / "package", *write_parts(folder, phase), settings, "# card\n", facts=facts)
    return folder / "package"


def write_start(folder: Path, params: Params) -> Path:
    """Write a model folder that a training with these parameters can start from; return it.

    Only its descriptions fit: weights and vocabulary are those of the small model.
    """
    start = write_small_package(folder)
    for name, changes in {
        "model.json": {"architecture": params.model.model_dump()},
        "segmentation.json": params.vocabulary.model_dump(),
        "tokenizer.json": {
            "source_language": params.languages[0],
            "target_language": params.languages[1],
            "tokenize": params.tokenize.model_dump(),
        },
    }.items():
        content = json.loads((start / name).read_text(encoding="utf-8")) | changes
        (start / name).write_text(json.dumps(content), encoding="utf-8")
    seal(start)
    return start
