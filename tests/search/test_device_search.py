"""Hypotheses that stay on the device are those that the host chooses, and the host hardly waits for it."""

from typing import Any
from unittest import mock

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from convs2s.config.translate import TranslateParams
from convs2s.fairseq.importer import SEARCH
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.search import search as search_module
from convs2s.search.beam_search import BeamSearch
from convs2s.search.ensemble import Ensemble
from convs2s.search.search import STEPS_ON_DEVICE, LiveBatch, SearchModel, SearchResult
from convs2s.search.stepwise_model import StepwiseModel
from tests.golden import golden_model
from tests.golden.judge import sources
from tests.model.small import sentence, small_model
from tests.search.table_model import TableModel, random_table

LAUNCHES = 17
"""Of a step, beside those of the model."""
SETTINGS: list[dict[str, Any]] = [
    *({"beam_size": beam, "min_length": least} for beam in (1, 2, 5, 12) for least in (0, 1, 14)),
    {"beam_size": 5, "legacy_eos": True, "alpha": 0.3},
    {"beam_size": 5, "n_best": 2},
]


def params_of(changes: dict[str, Any]) -> TranslateParams:
    """Return settings of a search for all hypotheses, unless n_best says otherwise."""
    return SEARCH.model_copy(update={"n_best": changes["beam_size"], **changes})


def check_same(found: list[list[SearchResult]], expected: list[list[SearchResult]]) -> None:
    """Assert that all hypotheses are the same, and their numbers but for rounding."""
    assert len(found) == len(expected)
    for found_ranked, expected_ranked in zip(found, expected, strict=True):
        for one, other in zip(found_ranked, expected_ranked, strict=True):
            assert (one.tokens, one.sources, one.at_end) == (other.tokens, other.sources, other.at_end)
            assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=5e-5)
            assert one.score == pytest.approx(other.score, abs=1e-5)
            assert (one.attention is None) == (other.attention is None)
            if one.attention is not None and other.attention is not None:
                assert one.attention == pytest.approx(other.attention, abs=1e-5)


def check_searches(
    model: SearchModel,
    source: torch.Tensor,
    limits: list[int],
    prefixes: list[list[int]],
    params: TranslateParams,
    keep_attention: bool,
) -> None:
    """Assert that both give the same."""
    arguments = model, source, limits, prefixes
    expected = BeamSearch(params, keep_attention, "host").search(*arguments)
    check_same(BeamSearch(params, keep_attention, "device").search(*arguments), expected)


@pytest.mark.parametrize("name", ["plain", "varied"])
def test_hypotheses_of_fairseq_models_are_those_of_the_host(name: str) -> None:
    """All of them, with every setting, limits, prefixes, attention, selected tokens and an ensemble (T21)."""
    model = StepwiseModel(golden_model(name))
    batch = torch.nn.utils.rnn.pad_sequence(sources(name), batch_first=True, padding_value=PAD)
    limits = [int(1.2 * len(source) + 10) for source in sources(name)]
    for changes in SETTINGS:
        check_searches(model, batch, limits, [], params_of(changes), "n_best" in changes)
    five = params_of({"beam_size": 5})
    prefixes = [[(7 * i + 11 * j) % 367 + 3 for j in range(i % 5)] for i in range(12)]
    check_searches(model, batch, [0, 1, 2, 3] * 3, [], five, False)
    check_searches(model, batch, limits, prefixes, five, True)
    for entries in (40, 6):  # the second, with fewer than a beam needs
        check_searches(model.restrict(torch.arange(entries)), batch, limits, [], five, False)
    check_searches(Ensemble([model, model.restrict(torch.arange(376))]), batch, limits, [], five, True)


class Launches(TorchDispatchMode):
    """Counts the operations that a GPU is given; views are none."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not function.is_view
        return function(*args, **(kwargs or {}))


def test_a_step_has_few_launches_beside_the_model_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU each costs the host some microseconds, as much as most of them cost the GPU.

    Steps are counted by the difference between searches of 8 and 24, since each has its start and its end.
    """
    as_on_a_gpu = "convs2s.search.token_scores.log_normalizer"
    monkeypatch.setattr(as_on_a_gpu, lambda logits: torch.logsumexp(logits, dim=1))
    model = StepwiseModel(small_model().eval().requires_grad_(False))
    model.output_biases[EOS] = -1e4  # no hypothesis ends before it must
    source = torch.stack([sentence(7, 40), torch.cat([sentence(5, 40), torch.tensor([PAD, PAD])])])
    search = BeamSearch(params_of({"beam_size": 5, "min_length": 0}), False, "device")
    totals = list[int]()
    for limit in (7, 23):
        with Launches() as launches:
            search.search(model, source, [limit] * 2)
        totals.append(launches.count)
    with torch.inference_mode():
        memory, rows = model.encode(source), torch.arange(10)
        with Launches() as launches:
            _, _, state = model.step(rows, memory, model.start(10))
            state.select(rows)
    assert (totals[1] - totals[0]) / 16 - launches.count <= LAUNCHES


@pytest.mark.parametrize("min_length", [0, 9])
def test_steps_never_wait_for_the_device(min_length: int) -> None:
    """Tensors without numbers, which PyTorch calls meta, cannot be read, copied or mixed with a CPU's.

    So the search ends where the host reads its first eight steps, some of which had prefixes.
    """
    stepwise = StepwiseModel(small_model().to("meta").eval())
    source = torch.full((3, 8), 5, device="meta")
    search = BeamSearch(params_of({"beam_size": 5, "min_length": min_length}), True, "device")
    recorded = list[int]()
    with (
        mock.patch.object(LiveBatch, "record", lambda _, steps: recorded.append(len(steps))),
        mock.patch.object(search_module, "read_steps", lambda steps, _: steps),
        pytest.raises(TypeError, match="NoneType"),
    ):
        search.search(stepwise, source, [20, 20, 3], [[3, 4], [], []])
    assert recorded == [STEPS_ON_DEVICE]


@pytest.mark.parametrize("steps", [24, 25])
def test_the_host_waits_once_in_eight_steps(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look of the host is one wait, for all that it copies."""
    looks = []

    def copy(tensors: Any, device: torch.device) -> Any:
        looks.append(tensors)
        return copy_to_host(tensors, device)

    copy_to_host = search_module.copy_to_host
    monkeypatch.setattr(search_module, "copy_to_host", copy)
    table = random_table(4, 7, 9).table
    table[:, :, EOS] = -1e4
    search = BeamSearch(params_of({"beam_size": 2}), False, "device")
    search.search(TableModel(table), torch.tensor([[3, EOS]]), [steps - 1])
    assert len(looks) == -(-steps // STEPS_ON_DEVICE)


def test_a_sentence_that_is_done_may_have_any_scores() -> None:
    """It goes on until the host looks. Only a NaN before its end means that the model is damaged."""
    table = torch.zeros(4, 50, 6)
    table[:, :, EOS] = 9.0
    table[:, EOS + 4 :] = torch.nan  # the contexts that follow two other tokens
    params = params_of({"beam_size": 1})
    source = torch.tensor([[2, EOS], [2, EOS]])
    check_searches(TableModel(table), source, [9, 9], [], params, False)
