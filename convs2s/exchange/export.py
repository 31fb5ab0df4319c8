"""A model folder -> its encoder and decoder step for torch.export and ONNX, checked against the model."""

import importlib
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.exchange.export_parts import DecoderStepPart, EncoderPart
from convs2s.exchange.export_vocabulary import write_vocabularies
from convs2s.model.loading import load_model
from convs2s.model.seq2seq import Seq2Seq
from convs2s.text.corpus.files import atomic_path
from convs2s.text.corpus.json_files import write_json
from convs2s.text.vocabulary.vocabulary import EOS, PAD, UNK

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
ENCODER, STEP = "encoder", "decoder_step"
ENCODER_NAMES = (["source"], ["keys", "values", "padding"])
TOLERANCE = 1e-4  # absolute and relative
LARGE = 2**30  # bytes of weights; an ONNX file cannot hold 2 GiB, so larger weights go next to it
Run = Callable[..., Sequence[Tensor]]


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
        raise FileExistsError(f"{out} already exists; wanted a new folder. Delete it, or name another.")
    runtime = required_packages()[-1]
    model = load_model(folder)  # weight norm is folded in
    encoder, step = EncoderPart(model), DecoderStepPart(model)
    with atomic_path(out) as temporary, torch.no_grad(), quiet():
        temporary.mkdir()
        programs = {ENCODER: export_encoder(model, encoder), STEP: export_step(model, encoder, step)}
        for name, program in programs.items():
            torch.export.save(program, temporary / f"{name}.pt2")
            inputs, outputs = ENCODER_NAMES if name == ENCODER else step_names(step)
            write_onnx(program, temporary / f"{name}.onnx", inputs, outputs, model)
        write_json(temporary / "export.json", description(model, step))
        write_vocabularies(folder, temporary)
        differences = {
            "torch.export": largest_difference(model, step, *exported_runs(temporary, model)),
            "ONNX": largest_difference(model, step, *onnx_runs(temporary, step, runtime)),
        }
    return "; ".join(f"{kind} differs from the model by at most {d:.1e}" for kind, d in differences.items())


def required_packages() -> list[Any]:
    """Return the modules that ONNX needs.

    Raises:
        ValueError: if one is not installed.
    """
    try:
        return [importlib.import_module(name) for name in PACKAGES]
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Exporting needs the packages {', '.join(PACKAGES)}, but {error.name} is not installed. Run: "
            "pip install 'convs2s[export]'"
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the exporters' messages, which are meant for their own developers."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def export_encoder(model: Seq2Seq, encoder: EncoderPart) -> ExportedProgram:
    """Return the encoder for any number of sentences and source tokens."""
    batch, source = Dim("batch", min=1), source_dimension(model)
    return torch.export.export(encoder, (example_source(),), dynamic_shapes=({0: batch, 1: source},))


def export_step(model: Seq2Seq, encoder: EncoderPart, step: DecoderStepPart) -> ExportedProgram:
    """Return the decoder step for any number of sentences, hypotheses and source tokens."""
    batch, hypotheses, source = Dim("batch", min=1), Dim("hypotheses", min=1), source_dimension(model)
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


def source_dimension(model: Seq2Seq) -> Any:
    """Return the dimension of source tokens, up to as many as the position table allows."""
    longest = model.max_source_tokens
    return Dim("source", min=1) if longest is None else Dim("source", min=1, max=longest)


def first_windows(step: DecoderStepPart, sentences: int, hypotheses: int) -> list[Tensor]:
    """Return the windows of the first step: zeros."""
    return [torch.zeros(sentences, hypotheses, width, channels) for width, channels in step.window_shapes()]


def step_names(step: DecoderStepPart) -> tuple[list[str], list[str]]:
    """Return the names of the decoder step's inputs and outputs, in order."""
    windows = [f"window_{i}" for i, _ in enumerate(step.window_shapes())]
    inputs = ["tokens", "position", *ENCODER_NAMES[1], *windows]
    return inputs, ["logits", "attention", *(f"next_{name}" for name in windows)]


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


def description(model: Seq2Seq, step: DecoderStepPart) -> dict[str, object]:
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


def exported_runs(folder: Path, model: Seq2Seq) -> tuple[Run, Run]:
    """Return functions that run the parts written by torch.export."""
    encoder, step = (torch.export.load(folder / f"{name}.pt2").module() for name in (ENCODER, STEP))

    def run_step(*inputs: Any) -> Sequence[Tensor]:
        logits, attention, windows = step(*inputs[:5], list(inputs[5:]))
        return [logits, attention, *windows]

    return encoder, run_step


def onnx_runs(folder: Path, step: DecoderStepPart, runtime: Any) -> tuple[Run, Run]:
    """Return functions that run the ONNX parts with onnxruntime on the CPU."""

    def runner(name: str, names: list[str]) -> Run:
        """Return a function that runs a part, tensors in, tensors out; `names` are those of its inputs."""
        session = runtime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
        needed = {entry.name for entry in session.get_inputs()}

        def run(*inputs: Tensor) -> Sequence[Tensor]:
            named = zip(names, inputs, strict=True)
            found = session.run(None, {name: tensor.numpy() for name, tensor in named if name in needed})
            return [torch.from_numpy(array) for array in found]

        return run

    return runner(ENCODER, ENCODER_NAMES[0]), runner(STEP, step_names(step)[0])


def largest_difference(model: Seq2Seq, step: DecoderStepPart, run_encoder: Run, run_step: Run) -> float:
    """Translate a few steps with the parts and with the model; return the largest difference of any value.

    The sizes differ from those traced, and include 1; there are enough steps to fill every window.

    Raises:
        ValueError: if a difference exceeds the tolerance.
    """
    longest = min(model.max_source_tokens or 9, 9)
    widest = max((width for width, _ in step.window_shapes()), default=0)
    steps = min(widest + 2, model.max_target_tokens or widest + 2)
    reference, largest = StepwiseModel(model), 0.0
    for sentences, hypotheses, tokens in ((1, 1, 1), (1, 3, longest), (4, 1, longest), (2, 5, 2)):
        source = made_up(sentences, tokens, model.source_embedding.words.num_embeddings)
        memory, state = reference.encode(source), reference.start(sentences * hypotheses)
        keys, values, padding = run_encoder(source)
        largest = max(largest, difference("keys", keys, memory.keys))
        largest = max(largest, difference("values", values, memory.values))
        windows: Sequence[Tensor] = first_windows(step, sentences, hypotheses)
        newest = torch.full((sentences, hypotheses), EOS)
        for position in range(steps):
            logits, attention, state = reference.step(newest.flatten(), memory, state)
            found = run_step(newest, torch.tensor([position]), keys, values, padding, *windows)
            windows = found[2:]
            largest = max(largest, difference("logits", found[0].flatten(0, 1), logits))
            largest = max(largest, difference("attention", found[1].flatten(0, 1), attention))
            newest = (newest * 7 + position + torch.arange(hypotheses)) % logits.shape[1]
    return largest


def made_up(sentences: int, tokens: int, vocabulary_size: int) -> Tensor:
    """Return source sentences made by formula, each shorter than the last, padded after EOS."""
    ids = UNK + torch.arange(sentences * tokens).view(sentences, tokens) * 13 % (vocabulary_size - UNK)
    for row, sentence in enumerate(ids):
        end = max(tokens - 1 - 2 * row, 0)
        sentence[end], sentence[end + 1 :] = EOS, PAD
    return ids


def difference(name: str, found: Tensor, wanted: Tensor) -> float:
    """Return the largest difference between two tensors.

    Raises:
        ValueError: if shapes differ or a difference exceeds the tolerance.
    """
    if found.shape == wanted.shape:
        gap = (found - wanted).abs()
        if bool((gap <= TOLERANCE * (1 + wanted.abs())).all()):
            return float(gap.max())
        found_words = f"differ from the model's by up to {float(gap.max()):.1e}"
    else:
        found_words = f"have the shape {tuple(found.shape)}, the model's {tuple(wanted.shape)}"
    raise ValueError(
        f"The exported {name} {found_words}; wanted at most {TOLERANCE} * (1 + |value|). Nothing was "
        "written. Please report this with the versions of torch, onnxscript and onnxruntime."
    )
