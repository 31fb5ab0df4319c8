"""Which search a translator uses, and how many sentences at once, as its device and settings say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from convs2s.decode.batches import gpu_batch_sentences
from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.device_search import DeviceSearch
from convs2s.decode.sampling import Sampler, Sampling
from convs2s.decode.word_translator import Row, WordTranslator
from convs2s.ids.candidates import Candidates
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import EOS
from convs2s.package.translator import load
from tests.decode.parrot import word_parrot, write_vocabulary
from tests.package.small_package import write_small_package

TEXTS = ["Das ist ein Haus.", "noch ein Hund, und eins.", "", "der Hund aus das Haus und die Maus.", "eins"]
ROWS = [Row([5, EOS], (), 0, 0)]
GIB = 1 << 30


def parrot(
    folder: Path, device: str, selection: VocabularySelection | None = None, **changes: Any
) -> WordTranslator:
    """Return a translator for a device that this machine need not have."""
    translator = word_parrot(write_vocabulary(folder / "vocabulary"), **changes)
    return WordTranslator(
        translator.model,
        translator.source,
        translator.target,
        translator.params,
        torch.device(device),
        selection,
    )


@pytest.mark.parametrize(
    ("device", "setting", "kind", "is_recorded"),
    [
        ("cpu", "auto", BeamSearch, False),
        ("cuda", "auto", DeviceSearch, False),
        ("cuda", "host", BeamSearch, False),
        ("cpu", "device", DeviceSearch, False),
        ("cpu", "graphs", DeviceSearch, False),
        ("cuda", "graphs", DeviceSearch, True),
    ],
)
def test_beam_search_stays_on_a_gpu_and_is_recorded_only_if_asked(
    tmp_path: Path, device: str, setting: str, kind: type[object], is_recorded: bool
) -> None:
    """On a CPU the host's search is faster; no GPU has replayed a recording yet."""
    translator = parrot(tmp_path, device, search=setting)
    search = translator._make_search(ROWS, False, None)
    assert type(search) is kind
    if isinstance(search, DeviceSearch):
        assert (search.recordings is not None) == is_recorded
    assert type(translator._make_search(ROWS, False, Sampling(seed=1))) is Sampler


def test_a_gpu_translates_more_sentences_at_once_as_far_as_they_fit(tmp_path: Path) -> None:
    """Its steps take about as long, whatever the batch. 1,024 * 5 rows of 40,000 scores take 2.3 GiB."""
    assert gpu_batch_sentences(128, 5, 40_000, 80 * GIB) == 1024
    assert gpu_batch_sentences(128, 5, 40_000, 8 * GIB) == 894
    assert gpu_batch_sentences(128, 12, 200_000, 8 * GIB) == 128  # never fewer than asked for
    properties = mock.Mock(total_memory=80 * GIB)
    with mock.patch("torch.cuda.get_device_properties", return_value=properties):
        assert parrot(tmp_path, "cuda", batch_sentences=128).batch_sentences == 1024
        assert parrot(tmp_path, "cpu", batch_sentences=128).batch_sentences == 128


def test_translations_that_depend_on_their_batch_are_those_of_a_cpu(tmp_path: Path) -> None:
    """With fairseq's limits of length, or selected target tokens, another batch is another translation."""
    selection = VocabularySelection(mock.create_autospec(Candidates, instance=True), 1, 1, 20)
    assert parrot(tmp_path, "cuda", batch_sentences=128, max_length_of="batch").batch_sentences == 128
    assert parrot(tmp_path, "cuda", selection, batch_sentences=128).batch_sentences == 128


def described(folders: Sequence[Path], **changes: Any) -> list[list[tuple[Any, ...]]]:
    """Return all that is found for the texts, with scores rounded."""
    translator = load(
        folders, "cpu", beam_size=4, n_best=3, precision="float32", batch_sentences=3, **changes
    )
    return [
        [(one.text, one.tokens, one.sources, round(one.score, 4), one.unknown_characters) for one in ranked]
        for ranked in translator.translate_n_best(TEXTS, prefixes=["Das", "", "", "", ""])
    ]


@pytest.mark.parametrize("setting", ["device", "graphs"])
@pytest.mark.parametrize("members", [1, 2])
def test_the_setting_changes_no_translation(tmp_path: Path, members: int, setting: str) -> None:
    """Neither those of the engine nor those of an ensemble, with a prefix."""
    folders = [write_small_package(tmp_path)] * members
    assert described(folders, search=setting) == described(folders)
