"""The exported parts, run by PyTorch and by onnxruntime, agree with the model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.exchange.export_parts import (
    ENCODER,
    ENCODER_NAMES,
    STEP,
    DecoderStepPart,
    first_windows,
    step_names,
)
from convs2s.ids.vocabulary import EOS, PAD, UNK
from convs2s.model.seq2seq import Seq2Seq

TOLERANCE = 1e-4  # absolute and relative
Run = Callable[..., Sequence[Tensor]]


def load_programs(folder: Path, model: Seq2Seq) -> tuple[Run, Run]:
    """Return functions that run the parts written by torch.export."""
    encoder, step = (torch.export.load(folder / f"{name}.pt2").module() for name in (ENCODER, STEP))

    def run_step(*inputs: Any) -> Sequence[Tensor]:
        logits, attention, windows = step(*inputs[:5], list(inputs[5:]))
        return [logits, attention, *windows]

    return encoder, run_step


def load_onnx(folder: Path, step: DecoderStepPart, runtime: Any) -> tuple[Run, Run]:
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


def compare(model: Seq2Seq, step: DecoderStepPart, run_encoder: Run, run_step: Run) -> float:
    """Translate a few steps with the parts and with the model; return the largest difference of any value.

    The sizes differ from those traced, and include 1; there are enough steps to fill every window.

    Raises:
        ValueError: if shapes differ or a difference exceeds the tolerance.
    """
    longest = min(model.max_source_tokens or 9, 9)
    widest = max((width for width, _ in step.window_shapes()), default=0)
    steps = min(widest + 2, model.max_target_tokens or widest + 2)
    reference, differences = StepwiseModel(model), list[float]()
    for sentences, hypotheses, tokens in ((1, 1, 1), (1, 3, longest), (4, 1, longest), (2, 5, 2)):
        source = make_source(sentences, tokens, model.source_embedding.words.num_embeddings)
        memory, state = reference.encode(source), reference.start(sentences * hypotheses)
        keys, values, padding = run_encoder(source)
        differences.append(measure_difference("keys", keys, memory.keys))
        differences.append(measure_difference("values", values, memory.values))
        windows: Sequence[Tensor] = first_windows(step, sentences, hypotheses)
        newest = torch.full((sentences, hypotheses), EOS)
        for position in range(steps):
            logits, attention, state = reference.step(newest.flatten(), memory, state)
            found = run_step(newest, torch.tensor([position]), keys, values, padding, *windows)
            windows = found[2:]
            differences.append(measure_difference("logits", found[0].flatten(0, 1), logits))
            differences.append(measure_difference("attention", found[1].flatten(0, 1), attention))
            newest = (newest * 7 + position + torch.arange(hypotheses)) % logits.shape[1]
    return max(differences)


def make_source(sentences: int, tokens: int, vocabulary_size: int) -> Tensor:
    """Return source sentences made by formula, each shorter than the last, padded after EOS."""
    ids = UNK + torch.arange(sentences * tokens).view(sentences, tokens) * 13 % (vocabulary_size - UNK)
    for row, sentence in enumerate(ids):
        end = max(tokens - 1 - 2 * row, 0)
        sentence[end], sentence[end + 1 :] = EOS, PAD
    return ids


def measure_difference(name: str, found: Tensor, expected: Tensor) -> float:
    """Return the largest difference between two tensors; errors as in `compare`."""
    try:
        torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=TOLERANCE)
    except AssertionError as error:
        raise ValueError(
            f"The exported {name} differ from the model's: {error} Nothing was written. Please report this "
            "with the versions of torch, onnxscript and onnxruntime."
        ) from None
    return float((found - expected).abs().max())
