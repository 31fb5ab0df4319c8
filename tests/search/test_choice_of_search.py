"""Which search a translator uses, and how many sentences at once, as its device and settings say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from convs2s.config.translate import SearchPlace
from convs2s.decode.batches import gpu_batch_sentences
from convs2s.decode.sampling import Sampling
from convs2s.decode.sentence_parts import SentencePart
from convs2s.decode.word_translator import WordTranslator
from convs2s.ids.candidates import Candidates
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import EOS
from convs2s.package.translator import load
from convs2s.search.ensemble import Ensemble
from convs2s.search.history import Ending, trace_back
from convs2s.search.search import STEPS_ON_DEVICE, LiveBatch
from tests.decode.parrot import Parrot, word_parrot, write_vocabulary
from tests.package.small_package import write_small_package

TEXTS = ["Das ist ein Haus.", "noch ein Hund, und eins.", "", "der Hund aus das Haus und die Maus.", "eins"]
ROWS = [SentencePart([5, EOS], (), 0, 0)]
MIB, GIB = 1 << 20, 1 << 30


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


def ensemble_parrot(translator: WordTranslator) -> WordTranslator:
    """Return a translator with three times its model."""
    members = Ensemble([translator.model] * 3)
    return WordTranslator(members, translator.source, translator.target, translator.params, translator.device)


@pytest.mark.parametrize(
    ("device", "setting", "steps"),
    [
        ("cpu", "auto", 1),
        ("cuda", "auto", STEPS_ON_DEVICE),
        ("cuda", "host", 1),
        ("cpu", "device", STEPS_ON_DEVICE),
        ("cuda", "graphs", STEPS_ON_DEVICE),
    ],
)
def test_the_host_looks_at_each_step_of_a_cpu(
    tmp_path: Path, device: str, setting: SearchPlace, steps: int
) -> None:
    """A GPU would wait for it. Samples are drawn on the host, whatever the device."""
    translator = parrot(tmp_path, device)
    translator.place = setting
    assert translator._make_search(ROWS, False, None).count_steps(translator.device) == steps
    assert translator._make_search(ROWS, False, Sampling(seed=1)).count_steps(translator.device) == 1


def test_a_gpu_translates_more_sentences_at_once_as_far_as_they_fit(tmp_path: Path) -> None:
    """Its steps take about as long, whatever the batch. 1,024 * 5 rows of 40,000 scores take 2.3 GiB.

    An ensemble takes four bytes more for each member, and what other programs or weights take is not free.
    """
    assert gpu_batch_sentences(128, 5, 40_000, 80 * GIB) == 1024
    assert gpu_batch_sentences(128, 5, 40_000, 8 * GIB) == 894
    assert gpu_batch_sentences(128, 5, 40_000, 24 * GIB, members=8) == 805
    assert gpu_batch_sentences(128, 12, 200_000, 8 * GIB) == 128  # never fewer than asked for
    with (
        mock.patch("torch.cuda.mem_get_info", return_value=(2 * MIB, 80 * GIB)),
        mock.patch("torch.cuda.memory_reserved", return_value=3 * MIB),
        mock.patch("torch.cuda.memory_allocated", return_value=2 * MIB),
    ):
        translator = parrot(tmp_path, "cuda", batch_sentences=128, beam_size=5)
        assert translator.batch_sentences == 3 * MIB // 4 // (5 * len(translator.target.vocabulary) * 12)
        translator = ensemble_parrot(translator)
        assert translator.batch_sentences == 3 * MIB // 4 // (5 * len(translator.target.vocabulary) * 20)
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


@pytest.mark.parametrize("members", [1, 2])
def test_the_setting_changes_no_translation(tmp_path: Path, members: int) -> None:
    """Neither those of the engine nor those of an ensemble, with a prefix."""
    folders = [write_small_package(tmp_path)] * members
    assert described(folders, search="device") == described(folders)


def penalize_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the search rank hypotheses lower the fewer source positions they attend to."""
    plain = LiveBatch._score

    def score(self: LiveBatch, ending: Ending) -> float:
        _, rows = self.history.trace([ending])
        attended = set(trace_back(rows, self.history.sources).flatten().tolist())
        return plain(self, ending) - 3.0 / len(attended)

    monkeypatch.setattr(LiveBatch, "_score", score)


def test_an_edit_of_the_search_runs_on_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one rule: where hypotheses are kept changes nothing."""
    folders = [write_small_package(tmp_path)]
    unedited = described(folders)
    penalize_coverage(monkeypatch)
    expected = described(folders)
    assert expected != unedited
    assert described(folders, search="device") == expected


def test_printed_scores_are_those_that_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An n-best list is best first by the scores beside it, also of a sentence translated in parts."""
    penalize_coverage(monkeypatch)
    translator = parrot(tmp_path, "cpu", beam_size=4, n_best=4)
    words = ["Das", "ist", "ein", "Haus", "und", "noch", "eins"]
    for limit in (None, 4):
        translator.model = Parrot(len(translator.target.vocabulary), limit)
        rows = translator.rows(words)
        found = translator.search(rows, False)
        [ranked] = translator.translate([words], False)
        scores = [one.score for one in ranked]
        assert scores == sorted(scores, reverse=True)
        assert scores == [sum(part[i].score for part in found) / len(rows) for i in range(4)]
        assert len(rows) == (1 if limit is None else 3)
