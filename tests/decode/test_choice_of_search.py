"""Which search a translator uses, and how many sentences at once, as its device and settings say."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from convs2s.decode import choose_search, device_search
from convs2s.decode.batches import gpu_batch_sentences
from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.choose_search import LIMITS, PREFIXES, SOURCES, TableModel, find_fault
from convs2s.decode.device_search import DeviceSearch
from convs2s.decode.sampling import Sampler, Sampling
from convs2s.decode.search import Ending, LiveBatch, SearchResult
from convs2s.decode.word_translator import Row, WordTranslator
from convs2s.ids.candidates import Candidates
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import EOS
from convs2s.package.translator import load
from tests.decode.parrot import TRANSLATE, Parrot, word_parrot, write_vocabulary
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
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    setting: str,
    kind: type[object],
    is_recorded: bool,
) -> None:
    """On a CPU the host's search is faster; no GPU has replayed a recording yet."""
    monkeypatch.setattr(choose_search, "find_fault", lambda *_: None)  # needs the device
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


CPU = torch.device("cpu")


def penalize_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the host's search rank hypotheses lower the fewer source positions they attend to."""
    plain = LiveBatch._score

    def score(self: LiveBatch, ending: Ending) -> float:
        _, rows = self.history.trace(ending)
        attended = {int(at[row]) for at, row in zip(self.history.sources, rows, strict=False)}
        return plain(self, ending) - 3.0 / len(attended)

    monkeypatch.setattr(LiveBatch, "_score", score)


def test_an_edit_of_the_host_s_search_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a comparison, a GPU would search without the penalty, and nobody would know."""
    penalize_coverage(monkeypatch)
    folders = [write_small_package(tmp_path)]
    expected = described(folders)
    place = (
        r"search on the device is left out, as it does not compute what the host's search does: .*device_sea"
    )
    with pytest.warns(UserWarning, match=place):
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


def shift_scores(results: list[list[SearchResult]], **changes: Any) -> list[list[SearchResult]]:
    return [[replace(one, **changes) for one in ranked] for ranked in results]


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (lambda results: [ranked[::-1] for ranked in results], "hypotheses differ"),
        (lambda results: shift_scores(results, log_likelihood=-1.0), "log-likelihoods differ: .* and -1$"),
        (lambda results: shift_scores(results, score=-1.0), "scores differ: .* and -1$"),
        (lambda results: [[replace(one, sources=one.sources[::-1]) for one in ranked] for ranked in results],
         "the positions attended to differ"),
        (lambda results: [[replace(h, attention=0 * h.attention) for h in ranked] for ranked in results],
         "attention weights differ"),
        (lambda results: 1 / 0, "it ends in ZeroDivisionError: division by zero"),
    ],
)  # fmt: skip
def test_whatever_differs_leaves_the_device_s_search_out(
    monkeypatch: pytest.MonkeyPatch, edit: Any, fault: str
) -> None:
    """Tokens, what hypotheses are ranked by, and what unknown words are replaced by."""
    plain = device_search.DeviceSearch.search
    monkeypatch.setattr(
        device_search.DeviceSearch, "search", lambda self, *arguments: edit(plain(self, *arguments))
    )
    found = find_fault(TRANSLATE.model_copy(update={"beam_size": 3}), CPU)
    assert found is not None
    assert re.match(fault, found)


@pytest.mark.parametrize("changes", [{}, {"alpha": 0.0}, {"min_length": 3}, {"legacy_eos": True}])
@pytest.mark.parametrize("beam_size", [1, 2, 5, 12, 40])
def test_the_searches_that_are_compared_end_at_many_steps_and_without_ties(
    beam_size: int, changes: dict[str, Any]
) -> None:
    """Hypotheses end before their limits and at them; no rounding of another device changes their order."""
    params = TRANSLATE.model_copy(update={"beam_size": beam_size, **changes})
    assert find_fault(params, CPU) is None
    params = params.model_copy(update={"beam_size": min(beam_size, 12), "n_best": min(beam_size, 12)})
    model, rounded = TableModel(CPU), TableModel(CPU)
    rounded.table += 2e-6 * torch.sin(torch.arange(rounded.table.numel()) ** 2.0).view_as(rounded.table)
    rows = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in SOURCES], batch_first=True)
    found, other = (BeamSearch(params, False).search(m, rows, LIMITS, PREFIXES) for m in (model, rounded))
    assert [[one.tokens for one in ranked] for ranked in found] == [
        [one.tokens for one in ranked] for ranked in other
    ]
    lengths = [[len(one.tokens) - 1 for one in ranked] for ranked in found]
    assert max(map(max, lengths)) > 2 * device_search.LOOK
    assert any(max(own) == limit for own, limit in zip(lengths, LIMITS, strict=True))
    assert any(max(own) < limit for own, limit in zip(lengths, LIMITS, strict=True))
