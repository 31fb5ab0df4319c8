"""Presets have the values given by the paper and fairseq, and find their data."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from convs2s.base.files import read_folder
from convs2s.config.download import UrlSource
from convs2s.config.text import SelectionParams
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import ShapesOnly
from pipelines.preset import EXPERIMENTS
from pipelines.stages.download import run
from tests.presets import params_of

ROOT = EXPERIMENTS.parent


class Figures(NamedTuple):
    """The facts about an experiment in the paper, or in fairseq."""

    millions: float  # of weights, with the authors' dictionaries; 0 if not published
    view: int  # source words that an encoder state sees
    entries: tuple[int, int] | None = None  # of the authors' dictionaries, which exceed 40,000 merges (T26)


EN_DE, EN_FR = (42_243, 43_676), (43_881, 43_978)
PAPER = {
    "wmt16-en-ro-word": Figures(260, 41),
    "wmt16-en-ro-bpe": Figures(137, 41),
    "wmt14-en-de-paper": Figures(159, 27, EN_DE),
    "wmt14-en-de-fairseq": Figures(216, 27, EN_DE),
    "wmt14-en-fr-paper": Figures(230, 25, EN_FR),
    "wmt14-en-fr-small": Figures(159, 27, EN_DE),
    "wmt14-en-fr-fairseq": Figures(266, 27, EN_FR),
    "iwslt14-de-en": Figures(0, 9),
    "ablation-en-de": Figures(284, 27),
    "gigaword": Figures(29, 13),
    "duc2004": Figures(29, 13),
}


@pytest.mark.parametrize("name", [name for name in PAPER if PAPER[name].millions])
def test_a_model_has_the_size_and_view_of_the_papers(name: str) -> None:
    """Counted by hand from the paper's shapes: millions of weights, and source words that a state sees."""
    params = params_of(name)
    with torch.device("meta"), ShapesOnly():
        sizes = PAPER[name].entries or (params.vocabulary.source_size, params.vocabulary.target_size)
        selects = params.train.selection is not None
        model = Seq2Seq(params.model, *sizes, padding_id=0, dropout=0.0, plain_output=selects)
    weights = sum(parameter.numel() for parameter in model.parameters())
    assert weights / 1e6 == pytest.approx(PAPER[name].millions, abs=0.75)
    assert 1 + sum(width - 1 for width in params.model.encoder_kernels) == PAPER[name].view
    depth = 5 if name == "ablation-en-de" else len(params.model.encoder_widths)
    assert params.model.attention == [True] * depth


@pytest.mark.parametrize("name", PAPER)
def test_training_is_that_of_the_paper_unless_it_is_fairseqs(name: str) -> None:
    """Only fairseq's presets have the changes of fairseq's command (§4.2, T10 and T36)."""
    params = params_of(name)
    train = params.train
    fairseq = name.endswith("fairseq")
    assert (train.learning_rate, train.label_smoothing) == ((0.5, 0.1) if fairseq else (0.25, 0.0))
    assert (train.momentum, train.clip_norm, train.anneal_factor) == (0.99, 0.1, 0.1)
    assert params.model.encoder_grad_scale == ("fairseq" if fairseq else "paper")


@pytest.mark.parametrize("name", PAPER)
def test_dropout_is_lower_for_the_largest_corpus(name: str) -> None:
    """The paper gives none for WMT; English-French, by far the largest corpus, has the smaller one (T10)."""
    assert params_of(name).train.dropout == (0.1 if "en-fr" in name else 0.2)


@pytest.mark.parametrize("name", PAPER)
def test_the_search_has_the_papers_beam(name: str) -> None:
    """All results of the paper are with a beam of 5 (§4.3)."""
    assert params_of(name).translate.beam_size == 5


@pytest.mark.parametrize("name", PAPER)
def test_unknown_words_are_replaced_where_words_are_the_vocabulary(name: str) -> None:
    """Pieces leave no word unknown; the ablations' published scores are from before replacement (§5.4)."""
    params = params_of(name)
    before_replacement = name == "ablation-en-de"
    assert params.replace.enabled == (params.vocabulary.kind == "word" and not before_replacement)


@pytest.mark.parametrize("name", PAPER)
def test_only_the_ablations_select_target_words(name: str) -> None:
    """They do so in training and in decoding, with the numbers of the authors' code (§5.4)."""
    params = params_of(name)
    numbers = SelectionParams(common=500, candidates=100) if name == "ablation-en-de" else None
    assert (params.train.selection, params.translate.selection) == (numbers, numbers)
    assert params.candidates.per_source == (1000 if numbers else None)


@pytest.mark.parametrize("name", PAPER)
def test_alpha_is_tuned_on_newstest2015_where_the_paper_does(name: str) -> None:
    """For the other corpora it gained nothing (§4.3)."""
    params = params_of(name)
    files = [source.target for source in params.download.development.sources if isinstance(source, UrlSource)]
    tuned = name in ("ablation-en-de", "wmt14-en-de-paper")
    assert (params.translate.alpha, files) == (("tuned", ["newstest2015.de"]) if tuned else (1.0, []))


def test_the_ablations_have_the_papers_sizes() -> None:
    """Three runs, 160,000 target words, and a decoder whose states see 21 words (§5.4, T25)."""
    params = params_of("ablation-en-de")
    assert (params.seeds, params.vocabulary.target_size) == ([1, 2, 3], 160_000)
    assert 1 + sum(width - 1 for width in params.model.decoder_kernels) == 21


def test_the_default_corpus_needs_no_network(tmp_path: Path) -> None:
    """It is in the repository; no sentence of the validation or test set is among the training sentences."""
    params, sample = (params_of(name).download for name in ("tatoeba-en-de-large", "tatoeba-en-de"))
    everything = sample.train.model_copy(update={"pairs": None})
    assert sample.model_copy(update={"train": everything}) == params
    texts: dict[str, list[tuple[str, str]]] = {}
    for split in ("train", "valid", "test"):
        local = params.model_copy(update={"folder": str(ROOT / params.folder)})
        run(local, ("en", "de"), split, tmp_path, tmp_path / split)
        texts[split] = list(read_folder(tmp_path / split))
    assert {split: len(pairs) for split, pairs in texts.items()} == {
        "train": 158_900, "valid": 1917, "test": 2628
    }  # fmt: skip
    sources, targets = (set(side) for side in zip(*texts["train"], strict=True))
    for source, target in [*texts["valid"], *texts["test"]]:
        assert source not in sources
        assert target not in targets
