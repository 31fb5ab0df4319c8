"""A training from raw text to BLEU, without DVC: a part of the GPU report."""

import copy
import tempfile
import time
from pathlib import Path
from typing import Any, get_args

from benchmarks.corpus_size import encode_all
from benchmarks.gpu_parts import device
from benchmarks.limited import Emit
from convs2s.config.params import Params
from convs2s.config.translate import TranslateParams
from convs2s.decode.load_words import load_words
from convs2s.model.storage import save_model
from convs2s.package.translator import Translator
from convs2s.score.corpus_scores import bleu
from convs2s.text.corpus.files import SIDES, read_lines
from convs2s.text.sources.split import Split
from convs2s.text.vocabulary.vocabulary import PAD, read_vocabulary
from convs2s.text.words.tokenization import load_tokenizer
from convs2s.train.distributed import Workers
from convs2s.train.loop import EpochReport, UpdateReport, train
from convs2s.train.memory import keep_freed_memory
from convs2s.train.setup import build_training
from convs2s.train.training import Training
from pipelines.preset import preset_params
from pipelines.stages import download, tokenize, truecase

FOR_TRANSLATION = 0.2
"""Share of the time reserved for translating the test set."""


def chosen(data: Path | None, toy: bool) -> Params:
    """Return Multi30k's parameters if its files are given, else those of the default corpus."""
    if data is not None:
        params = preset_params("multi30k-en-de")
        changed = params.download.model_copy(update={"folder": str(data)})
        return params.model_copy(update={"download": changed})
    params = preset_params("tatoeba-en-de")
    return small(params) if toy else params


def small(params: Params) -> Params:
    """Return parameters of a training that takes a second."""
    two = {f"{side}_widths": [8, 8] for side in ("encoder", "decoder")}
    two |= {f"{side}_kernels": [3, 3] for side in ("encoder", "decoder")}
    sizes: dict[str, Any] = {
        "embedding_size": 8,
        "output_embedding_size": 8,
        "attention": [True, True],
        **two,
    }
    return params.model_copy(
        update={
            "download": params.download.model_copy(update={"train_pairs": 200}),
            "vocabulary": params.vocabulary.model_copy(update={"source_size": 300, "target_size": 300}),
            "model": params.model.model_copy(update=sizes),
            "train": params.train.model_copy(update={"max_epochs": 1}),
        }
    )


def prepare(params: Params, data: Path) -> None:
    """Run the stages before training."""
    languages = params.download.source_language, params.download.target_language
    for split in get_args(Split):
        download.run(params.download, split, data / "downloads", data / "raw" / split)
    truecase.run(params.tokenize, languages, data / "raw/train", data / "truecasers")
    for split in ("train", "valid"):
        folders = data / "truecasers", data / "raw" / split, data / "tokenized" / split
        tokenize.run(params.tokenize, languages, *folders)
    encode_all(params, data / "tokenized/train", data / "tokenized/valid", data)


def train_to_the_end(data: Path | None, toy: bool, emit: Emit, seconds: float) -> None:
    """Emit a row for each epoch, then BLEU; a training that takes too long ends early and is marked so."""
    begin = time.monotonic()
    params = chosen(data, toy)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(params, folder)
        emit({"step": "text, vocabulary", "seconds": time.monotonic() - begin})
        keep_freed_memory()
        paths = folder / "encoded", folder / "vocabulary", folder / "none"
        training = build_training(params.model, params.train, 1, *paths, Workers(0, 1, device()))
        emit(run(training, begin + (1 - FOR_TRANSLATION) * seconds, emit))
        sizes = [len(read_vocabulary(folder / "vocabulary" / f"{side}.tsv")) for side in SIDES]
        save_model(folder / "model", training.model, params.model, sizes[0], sizes[1], PAD)
        emit(scored(params, folder, 10 if toy else None))


def run(training: Training, end: float, emit: Emit) -> dict[str, Any]:
    """Train until the schedule or the time ends; keep the best weights; return the last row."""
    best, tokens, start = copy.deepcopy(training.model.state_dict()), 0, time.monotonic()
    begin = start
    for report in train(training):
        if isinstance(report, UpdateReport):
            tokens += report.target_tokens
        if isinstance(report, EpochReport):
            seconds = time.monotonic() - begin
            emit({
                "step": f"epoch {report.record['epoch']}", "seconds": seconds, "tokens/s": tokens / seconds,
                "perplexity": report.record["validation_perplexity"],
            })  # fmt: skip
            best = copy.deepcopy(training.model.state_dict()) if report.is_best else best
            tokens, begin = 0, time.monotonic()
        if time.monotonic() > end:
            break
    training.model.load_state_dict(best)
    reason = training.annealing.ends(training.state.perplexities)
    return {
        "step": "training ended: " + (reason or "no time left, before its end"),
        "seconds": time.monotonic() - start, "perplexity": min(training.state.perplexities, default=None),
    }  # fmt: skip


def scored(params: Params, folder: Path, first: int | None) -> dict[str, Any]:
    """Translate the test set, or its first sentences, with the settings of `translate`; return the row.

    `tuned` counts as alpha 1.
    """
    content = params.translate.model_dump()
    content["alpha"] = 1.0 if content["alpha"] == "tuned" else content["alpha"]
    found = TranslateParams.model_validate(content)
    words = load_words([folder / "model"], folder / "vocabulary", folder / "none", found, device().type)
    languages = params.download.source_language, params.download.target_language
    sides = [
        load_tokenizer(language, params.tokenize, folder / "truecasers" / f"{side}.tsv")
        for language, side in zip(languages, SIDES, strict=True)
    ]
    translator = Translator(words, sides[0], sides[1], None)
    sources, references = (list(read_lines(folder / "raw/test" / f"{side}.txt"))[:first] for side in SIDES)
    begin = time.monotonic()
    score = bleu(translator.translate(sources), references)
    seconds = time.monotonic() - begin
    step = f"{len(sources)} sentences, beam {found.beam_size}, {score.signature}"
    return {"step": step, "seconds": seconds, "sentences/s": len(sources) / seconds, "BLEU": score.value}
