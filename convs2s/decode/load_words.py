"""Load trained models and their vocabularies as a translator of words."""

from collections.abc import Sequence
from pathlib import Path

import torch

from convs2s.config.translate import TranslateParams
from convs2s.decode.device import find_device
from convs2s.decode.ensemble import Ensemble
from convs2s.decode.fast_model import FastModel
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.decode.word_translator import WordTranslator
from convs2s.model.loading import load_model
from convs2s.model.seq2seq import Seq2Seq
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.imported_codec import load_codec
from convs2s.text.vocabulary.selection import VocabularySelection
from convs2s.text.vocabulary.vocabulary import PAD


def load_words(
    models: Sequence[Path],
    vocabulary: Path,
    candidates: Path,
    params: TranslateParams,
    device: str | None = None,
    processes: int = 1,
) -> WordTranslator:
    """Load models, several as an ensemble, and the codecs of both sides.

    Args:
        models: folders with model.json and weights.safetensors.
        vocabulary: folder of the stage vocabulary.
        candidates: candidates.npz of the stage candidates; read only if `params` selects target tokens.
        params: of the search.
        device: such as cpu, cuda or cuda:1; None selects a GPU if there is one.
        processes: number of parallel processes on a CPU.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, the device does not exist or cannot be shared by that many
            processes, or a model or the candidates do not fit the vocabulary.
    """
    found = find_device(device)
    source, target = load_codec(vocabulary, "source"), load_codec(vocabulary, "target")
    members = [load_member(folder, vocabulary, (source, target), params, found) for folder in models]
    model = members[0] if len(members) == 1 else Ensemble(members)
    wanted = params.selection
    selection = (
        VocabularySelection.load(candidates, wanted.common, wanted.candidates, len(target.vocabulary))
        if wanted
        else None
    )
    return WordTranslator(model, source, target, params, found, selection, processes)


def load_member(
    folder: Path, vocabulary: Path, codecs: tuple[Codec, Codec], params: TranslateParams, device: torch.device
) -> StepwiseModel:
    """Load one model and check that it was trained with vocabularies of these sizes."""
    seq2seq = load_model(folder, device)
    model = fastest(seq2seq, params.precision, device)
    sizes = model.source_size, model.target_size
    for side, size, codec in zip(("source", "target"), sizes, codecs, strict=True):
        if size != len(codec.vocabulary):
            raise ValueError(
                f"{folder} was trained with {size:,} {side} vocabulary entries but {vocabulary / side}.tsv "
                f"has {len(codec.vocabulary):,} (including 3 special ones). Wanted the vocabulary it was "
                "trained with: run `dvc repro`, or fetch the whole folder again."
            )
    if seq2seq.padding_id != PAD:
        raise ValueError(
            f"{folder} has the padding id {seq2seq.padding_id}, wanted {PAD} as in its vocabulary. Was "
            "model.json edited? Fetch the whole folder again."
        )
    return model


def fastest(seq2seq: Seq2Seq, precision: str, device: torch.device) -> StepwiseModel:
    """Return a loaded model in the fastest form for beam search, with products of this precision.

    Raises:
        ValueError: if the machine does not support this precision, or is slow with it.
    """
    if precision == "int8":
        from convs2s.decode.int8_linear import Int8Linear, check_int8  # noqa: PLC0415  # imports numba

        check_int8(device)
        return FastModel(seq2seq, Int8Linear)
    if precision == "bfloat16":
        seq2seq = seq2seq.to(torch.bfloat16)
    return FastModel(seq2seq) if device.type == "cpu" else StepwiseModel(seq2seq)
