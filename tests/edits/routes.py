"""What a user does with a model: train it, translate, score, serve; here with an edited library."""

import contextlib
import io
import json
import os
import re
import urllib.request
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import convs2s
from convs2s.cli import main
from convs2s.ids.candidates import NO_CANDIDATES, write_candidates
from convs2s.ids.vocabulary import PAD, UNK
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import save_model
from convs2s.package.folder import Settings, write_package
from convs2s.serve.pairs import load_pairs
from convs2s.text.alignment.dictionary import Entry, write_dictionary
from convs2s.text.vocabulary.codec import Codec
from convs2s.train.loop import UpdateReport, train
from convs2s.train.setup import build_training
from tests.decode.parrot import PACKAGED, TOKENIZE, write_vocabulary
from tests.model.small import small_params
from tests.package.small_package import FACTS, WORDS
from tests.serve.running import running
from tests.train.tiny import ALONE, tiny_params, write_tiny

MODEL = small_params(output_embedding_size=12)  # as the input's, so that tables can be tied
SOURCES = [
    "ein Haus", "Das ist ein Haus und noch eins .", "Hund", "die Maus , der Hund und das Haus", "noch eins",
    "der Katze ist aus", "und das Haus ist ein Haus",
]  # fmt: skip
TARGETS = ["ein Haus", "Das ist noch ein Haus .", "Hund aus", "Maus , Hund", "eins", "aus", "das Haus"]
ENGINES = ("auto", "plain")
WARNING = "convs2s: warning: "
ERROR = "convs2s: error: "

Results = dict[str, Any]
"""Texts and numbers by route; under `warnings`, by route, the fast paths left out and how each differs; under
`errors`, by route, what it failed with. These two have only the routes with a warning or an error."""


def write_folder(folder: Path) -> Path:
    """Write a model folder with random weights; weights that an edit has added have their initial values."""
    vocabulary = write_vocabulary(folder / "vocabulary", WORDS)
    size = len(Codec.load(vocabulary, "source").vocabulary)
    torch.manual_seed(1)
    model = Seq2Seq(MODEL, size, size, PAD, dropout=0.0)
    with torch.no_grad():
        for embedding in (model.source_embedding, model.target_embedding):
            for parameter in embedding.parameters():
                parameter.mul_(5)
        for name, parameter in model.named_parameters():
            if name.endswith("map.bias"):
                parameter.copy_(0.3 * torch.sin(1.37 * torch.arange(len(parameter)) + len(name)))
        model.output_layer.bias[UNK] = 1.0  # so that unknown words are replaced, by attention
    save_model(folder / "model", model, MODEL)
    dictionary = folder / "alignment" / "dictionary.tsv"
    candidates = folder / "candidates" / "none.npz"
    write_dictionary(dictionary, [Entry("Haus", "house", 3, 4), Entry("Hund", "dog", 3, 4)])
    write_candidates(candidates, NO_CANDIDATES)
    search = PACKAGED.model_copy(update={"beam_size": 3, "precision": "float32"})
    settings = Settings(("en", "de"), TOKENIZE, search, True)
    facts = replace(FACTS, seed=1)
    write_package(
        folder / "package", folder / "model", vocabulary, dictionary, candidates, settings, "# card\n",
        facts=facts,
    )  # fmt: skip
    return folder / "package"


def run_all(folder: str, package: str | None, changes: dict[str, Any]) -> dict[str, Results]:
    """Run every route with and without the engine; return the results of each.

    Args:
        folder: for files.
        package: the model folder; None to write one here.
        changes: to the section train.
    """
    root = Path(folder)
    root.mkdir()
    model = Path(package) if package else write_folder(root)
    for name, lines in (("source.txt", SOURCES), ("target.txt", TARGETS)):
        (root / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    write_tiny(root, train=32, valid=8)
    return {engine: run_with(engine, root, model, changes) for engine in ENGINES}


def run_with(engine: str, folder: Path, model: Path, changes: dict[str, Any]) -> Results:
    """Run every route with or without the engine."""
    os.environ["CONVS2S_ENGINE"] = engine
    routes: dict[str, Callable[[], Any]] = {
        "training": lambda: run_training(folder, changes),
        "translate": lambda: translate(folder, model),
        "score": lambda: score(folder, model),
        "serve": lambda: serve(model),
        "attention": lambda: attention(model),
    }
    results: Results = {"warnings": {}, "errors": {}}
    for name, route in routes.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                results[name] = route()
            except ValueError as error:
                results[name] = []
                results["errors"][name] = str(error)
        if caught:
            results["warnings"][name] = dict(left_out(str(warning.message)) for warning in caught)
    return results


def left_out(message: str) -> tuple[str, str]:
    """Return which fast path a warning is about, and what it says about the difference."""
    match = re.fullmatch(
        r"The CPU's fast (\w+) is left out, as .* does: (.*)\. It has its own copy.*", message
    )
    assert match is not None, message
    return match[1], match[2]


def run_training(folder: Path, changes: dict[str, Any]) -> list[float]:
    """Train for eight large updates; return their losses and the perplexities of validations."""
    settings = {"dropout": 0.0, "max_epochs": 2, "learning_rate": 0.5, "clip_norm": 0.5, "momentum": 0.5}
    params = tiny_params(folder, **(settings | changes))
    paths = folder / "encoded", folder / "vocabulary", folder / "candidates" / "candidates.npz"
    training = build_training(MODEL, params.train, 1, *paths, ALONE)
    losses = [report.loss for report in train(training) if isinstance(report, UpdateReport)]
    return [*losses, *training.state.perplexities]


def command(*arguments: str | Path) -> None:
    """Run the command line."""
    with contextlib.redirect_stderr(io.StringIO()) as error:
        status = main([*map(str, arguments), "--device", "cpu"])
    for line in error.getvalue().splitlines():
        if line.startswith(WARNING):
            warnings.warn(line.removeprefix(WARNING), stacklevel=1)
    if status:
        raise ValueError(error.getvalue().rpartition(ERROR)[2])


def translate(folder: Path, model: Path) -> list[Any]:
    """Return what `convs2s translate` writes: texts and scores of the best two, and links of words."""
    out = folder / "out.txt"
    links = folder / "links.txt"
    source = folder / "source.txt"
    options = "--alignment", links, "--n-best", "2"
    command("translate", "--model", model, "--input", source, "--output", out, *options)
    rows = [line.split(" ||| ") for line in out.read_text(encoding="utf-8").splitlines()]
    return [[[text, float(value)] for _, text, value in rows], links.read_text().splitlines()]


def score(folder: Path, model: Path) -> list[Any]:
    """Return what `convs2s translate --score` writes."""
    out = folder / "scores.txt"
    command(
        "translate", "--model", model, "--input", folder / "source.txt", "--score", folder / "target.txt",
        "--output", out,
    )  # fmt: skip
    rows = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    return [[float(likelihood), tokens] for likelihood, tokens in rows]


def serve(model: Path) -> list[Any]:
    """Return what a server answers: translations, and texts and scores of the best two."""
    with running(load_pairs([model], "cpu")) as address:
        translated = post(f"{address}translate", SOURCES)["translatedText"]
        lines = post(f"{address}n-best", "\n".join(SOURCES))
    return [
        translated,
        [[h["text"], round(h["score"], 4)] for line in lines for h in line["hypotheses"][:2]],
    ]


def post(address: str, q: str | list[str]) -> Any:
    """Return the answer to a request for translations."""
    body = json.dumps({"q": q, "source": "en", "target": "de"}).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def attention(model: Path) -> list[Any]:
    """Return the attention of each best translation, averaged over layers."""
    lists = convs2s.load(model, "cpu").translate_n_best(SOURCES, keep_attention=True)
    return [best.attention.weights.tolist() for best, *_ in lists if best.attention is not None]
