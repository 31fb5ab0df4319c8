"""Load trained models and their vocabularies as a translator of words, and translate a corpus."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import torch
from tqdm import tqdm

from convs2s.base.files import SIDES
from convs2s.base.parallel import MOST_PROCESSES
from convs2s.config.translate import SearchPlace, TranslateParams
from convs2s.decode.left_out import SourceLine, read_source
from convs2s.decode.put_back import put_back
from convs2s.decode.translations import Hypothesis
from convs2s.decode.word_translator import WordTranslator
from convs2s.ids.selection import VocabularySelection
from convs2s.model.precision import Wanted
from convs2s.model.storage import load_model
from convs2s.search.choose_model import choose_model
from convs2s.search.ensemble import Ensemble
from convs2s.text.vocabulary.codec import Codec

CHUNK_BATCHES = 64
"""Batches per chunk of a corpus: enough to group sentences of similar length, few enough for memory."""
DEVICE = re.compile(r"(cpu|cuda|mps|xpu)(:\d{1,3})?")
"""Devices that compute; PyTorch has others that do not, such as meta."""


def load_word_translator(
    models: Sequence[Path],
    vocabulary: Path,
    candidates: Path,
    params: TranslateParams,
    device: str | None = None,
    processes: int = 1,
    search: SearchPlace = "auto",
) -> WordTranslator:
    """Load models, several as an ensemble, and the codecs of both sides.

    Args:
        models: folders with model.json and weights.safetensors.
        vocabulary: folder of the stage vocabulary.
        candidates: candidates.npz of the stage candidates; read only if `params` selects target tokens.
        device: such as cpu, cuda or cuda:1; None selects a GPU if there is one, but the CPU for int8.
        processes: number of processes that translate batches in parallel on a CPU.
        search: where beam search keeps its hypotheses.
    """
    if not 1 <= processes <= MOST_PROCESSES:
        raise ValueError(f"processes: expected 1 to {MOST_PROCESSES:,}, found {processes}.")
    where = find_device(device, params.precision)
    source, target = (Codec.load(vocabulary, side) for side in SIDES)
    members = []
    for folder in models:
        seq2seq = load_model(folder, where)
        embeddings = seq2seq.source_embedding, seq2seq.target_embedding
        for side, embedding, codec in zip(SIDES, embeddings, (source, target), strict=True):
            size = embedding.words.num_embeddings
            if size != len(codec.vocabulary):
                raise ValueError(
                    f"{folder} was trained with {size:,} {side} vocabulary entries but "
                    f"{vocabulary / side}.tsv has {len(codec.vocabulary):,} (including 3 special ones). "
                    "Expected the vocabulary it was trained with: run `dvc repro`, or fetch the whole folder "
                    "again."
                )
        members.append(choose_model(seq2seq, params.precision, where))
    model = members[0] if len(members) == 1 else Ensemble(members)
    selection = VocabularySelection.read(candidates, params.selection, len(target.vocabulary))
    return WordTranslator(model, source, target, params, where, selection, processes, search)


def find_device(name: str | None, precision: Wanted = "auto") -> torch.device:
    """Return a device by name, or None for one that has this precision: a GPU if there is one, else the CPU.

    Only CPUs have int8. A ValueError if there is no device of the name.
    """
    if name is None:
        return torch.device("cuda" if precision != "int8" and torch.cuda.is_available() else "cpu")
    try:
        if not DEVICE.fullmatch(name):
            raise RuntimeError("it is unknown, or does not compute.")
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:  # the latter from a PyTorch without CUDA
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {name!r}: {reason} Expected cpu, cuda or cuda:NUMBER.") from None


def models_of(member: str, seeds: Sequence[int], trained: Path) -> list[Path]:
    """Return the folders of the models that translate together: trained/SEED/model.

    Models of other seeds in `trained` are ignored: once seeds 1 to 10 are trained, setting `seeds` to
    1 to 8 and then to all ten gives both ensembles of Table 2 without further training (T24).

    Args:
        member: a seed, or `ensemble` for all of `seeds`.
    """
    members = seeds if member == "ensemble" else [int(member)]
    return [trained / str(seed) / "model" for seed in members]


def translate_corpus(
    translator: WordTranslator,
    lines: Iterable[str],
    tokenize: Callable[[str], list[str]],
    keep_attention: bool,
    restore_case: Callable[[list[str]], list[str]] = list,
) -> Iterator[tuple[SourceLine, list[Hypothesis]]]:
    """Yield the words and the hypotheses of each line, in order, and show progress.

    What the model never saw is left out of what it translates, and put back; `restore_case` as in `put_back`.
    Errors are those of `WordTranslator.translate_into`.
    """
    sources = [read_source(line, tokenize, translator.source) for line in lines]
    chunk = CHUNK_BATCHES * translator.batch_sentences
    with tqdm(total=len(sources), desc="translate", unit=" sentences", disable=None) as progress:
        for start in range(0, len(sources), chunk):
            chosen = sources[start : start + chunk]
            seen = [source.seen for source in chosen]
            n_best_lists = translator.translate(seen, keep_attention, on_done=progress.update)
            for source, hypotheses in zip(chosen, n_best_lists, strict=True):
                yield source, [put_back(source, one, translator.target, restore_case) for one in hypotheses]
