"""A model folder -> its encoder and decoder step for torch.export and ONNX, checked against the model."""

import importlib
import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from convs2s.base.files import atomic_path, write_json
from convs2s.exchange.export_check import compare, load_onnx, load_programs
from convs2s.exchange.export_parts import (
    ENCODER,
    ENCODER_NAMES,
    STEP,
    DecoderStepPart,
    EncoderPart,
    first_windows,
    step_names,
)
from convs2s.ids.vocabulary import EOS, PAD, SPECIALS, UNK, read_vocabulary
from convs2s.model.description import check_files, read_description
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import load_model
from convs2s.text.vocabulary.codec import ALLOWED, CODES, IMPORTED_MODEL

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
PREPARATION = (
    *("tokenizer.json", "segmentation.json", "source.model", "target.model", "truecaser.tsv"),
    *(CODES, ALLOWED, IMPORTED_MODEL),
)
EXAMPLE = "translate.py"
LARGE = 2**30  # bytes of weights; an ONNX file cannot hold 2 GiB, so larger weights go next to it


def export_model(folder: Path, out: Path) -> str:
    """Write encoder and decoder step as .pt2 and .onnx, described in export.json; return a one-line summary.

    The parts accept any number of sentences, hypotheses and source tokens; each file is run on inputs of
    several sizes and compared with the model. The vocabularies and a decoding example are included.

    Raises:
        OSError: if a file is missing or `out` exists.
        ValueError: if the model is damaged, a package is not installed, or the values of an exported part
            differ from the model's.
    """
    if out.exists():
        raise FileExistsError(f"{out} already exists; expected a new folder. Delete it, or name another.")
    runtime = import_packages()
    model = load_model(folder)  # weight norm is folded in
    encoder, step = EncoderPart(model), DecoderStepPart(model)
    with atomic_path(out) as temporary, torch.no_grad(), suppress_messages():
        temporary.mkdir()
        programs = {ENCODER: export_encoder(model, encoder), STEP: export_step(model, encoder, step)}
        for name, program in programs.items():
            torch.export.save(program, temporary / f"{name}.pt2")
            inputs, outputs = ENCODER_NAMES if name == ENCODER else step_names(step)
            write_onnx(program, temporary / f"{name}.onnx", inputs, outputs, model)
        write_json(temporary / "export.json", describe_parts(model, step))
        write_vocabularies(folder, temporary)
        differences = {
            "torch.export": compare(model, step, *load_programs(temporary, model)),
            "ONNX": compare(model, step, *load_onnx(temporary, step, runtime)),
        }
    return "; ".join(f"{kind} differs from the model by at most {d:.1e}" for kind, d in differences.items())


def import_packages() -> Any:
    """Import the packages that ONNX needs, and return onnxruntime; raise ValueError if one is missing."""
    try:
        return [importlib.import_module(name) for name in PACKAGES][-1]
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Exporting needs the packages {', '.join(PACKAGES)}, but {error.name} is not installed. Run: "
            "pip install 'convs2s[export]'"
        ) from error


@contextmanager
def suppress_messages() -> Iterator[None]:
    """Suppress the exporters' messages, which are meant for their own developers."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def export_encoder(model: Seq2Seq, encoder: EncoderPart) -> ExportedProgram:
    """Return the encoder for any number of sentences and source tokens."""
    batch, source = Dim("batch", min=1), Dim("source", min=1, max=model.max_source_tokens)
    return torch.export.export(encoder, (example_source(),), dynamic_shapes=({0: batch, 1: source},))


def export_step(model: Seq2Seq, encoder: EncoderPart, step: DecoderStepPart) -> ExportedProgram:
    """Return the decoder step for any number of sentences, hypotheses and source tokens."""
    batch, hypotheses = Dim("batch", min=1), Dim("hypotheses", min=1)
    source = Dim("source", min=1, max=model.max_source_tokens)
    memory = encoder(example_source())
    windows = first_windows(step, len(memory[0]), 2)
    tokens = torch.full((len(memory[0]), 2), EOS)
    rows, places = {0: batch, 1: hypotheses}, {0: batch, 1: source}
    return torch.export.export(
        step,
        (tokens, torch.tensor([0]), *memory, windows),
        dynamic_shapes=(rows, None, places, places, places, [rows for _ in windows]),
    )


def example_source() -> Tensor:
    """Return sentences to trace with, of several lengths, so that no size is treated as a constant."""
    return torch.tensor([[UNK, UNK, EOS], [UNK, EOS, PAD], [EOS, PAD, PAD]])


def write_onnx(
    program: ExportedProgram, path: Path, inputs: list[str], outputs: list[str], model: Seq2Seq
) -> None:
    """Write a program as ONNX; if it is large, its weights go into a separate file."""
    size = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    torch.onnx.export(
        program,
        f=str(path),
        input_names=inputs,
        output_names=outputs,
        dynamo=True,
        external_data=size > LARGE,
        verbose=False,
    )


def describe_parts(model: Seq2Seq, step: DecoderStepPart) -> dict[str, object]:
    """Return the facts that a program needs to translate with the parts."""
    inputs, outputs = step_names(step)
    return {
        "parts": {
            ENCODER: {"inputs": ENCODER_NAMES[0], "outputs": ENCODER_NAMES[1]},
            STEP: {"inputs": inputs, "outputs": outputs},
        },
        "shapes": {
            "source": ["batch", "source"],
            "keys": ["batch", "source", "embedding_size"],
            "values": ["batch", "source", "embedding_size"],
            "padding": ["batch", "source"],
            "tokens": ["batch", "hypotheses"],
            "position": [1],
            "windows": [["batch", "hypotheses", *shape] for shape in step.window_shapes()],
        },
        "first_step": {"tokens": EOS, "position": 0, "windows": 0.0},
        "ids": {"padding": PAD, "end": EOS, "unknown": UNK},
        "max_source_tokens": model.max_source_tokens,
        "max_target_tokens": model.max_target_tokens,
        "embedding_size": model.source_embedding.words.embedding_dim,
    }


def write_vocabularies(folder: Path, out: Path) -> None:
    """Write SIDE_vocabulary.json, a list in which each entry's index is its id, and the example decoder.

    The files that define tokenization and segmentation are copied. For a folder with only weights, as
    written by the stage train, nothing is written.

    Raises:
        FileNotFoundError: if one vocabulary is missing.
        ValueError: if a file is damaged.
    """
    vocabularies = [folder / f"{side}.tsv" for side in ("source", "target")]
    if not any(path.is_file() for path in vocabularies):
        return
    names = [name for name in PREPARATION if (folder / name).is_file()]
    check_files(folder, read_description(folder).files, [*names, *(path.name for path in vocabularies)])
    for path in vocabularies:
        write_json(out / f"{path.stem}_vocabulary.json", [*SPECIALS, *read_vocabulary(path).entries])
    for name in names:
        shutil.copyfile(folder / name, out / name)
    shutil.copyfile(Path(__file__).with_name("onnx_example.py"), out / EXAMPLE)
