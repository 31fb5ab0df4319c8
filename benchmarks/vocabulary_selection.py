"""Words per second of translation and training with and without vocabulary selection (§5.4).

    python -m benchmarks.vocabulary_selection [--types 160000] [--sentences 32] [--beam-sizes 1 5]

The model is that of the paper's ablations, 13 and 5 layers of 512, with random weights, so every hypothesis
reaches its maximum length, the source's. Source words are drawn by Zipf's law; each has 100 candidates drawn
the same way. The two variants take turns; the table has medians over the rounds, and the median ratio.
"""

import argparse
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.harness import Report, Work, add_common, in_turns, measure_speed, program
from convs2s.fairseq.importer import SEARCH
from convs2s.ids.candidates import Candidates
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search.beam_search import BeamSearch
from convs2s.search.stepwise_model import StepwiseModel
from convs2s.train.loss import SummedLoss, softmax_loss
from pipelines.preset import preset_params

COMMON, CANDIDATES = 500, 100
COLUMNS = ("work", "words/s, whole vocabulary", "words/s, selected", "ratio")


def zipf(random: np.random.Generator, types: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Draw word ids: rank r with a probability proportional to 1/r."""
    drawn = np.exp(random.random(shape) * np.log(types - 3)).astype(np.int64) - 1  # ranks from 0
    ids: NDArray[np.int64] = np.minimum(drawn, types - 4) + 3
    return ids


class Bench:
    """A batch, a model and a selection."""

    def __init__(self, options: argparse.Namespace) -> None:
        random = np.random.default_rng(1)
        types = options.types
        self.device = torch.device(options.device)
        self.words: int = options.words
        ends = np.full((options.sentences, 1), EOS)
        shape = (options.sentences, options.words)
        self.source, self.target = (np.hstack([zipf(random, types, shape), ends]) for _ in range(2))
        candidates = zipf(random, types, (types * CANDIDATES,)).astype(np.int32)
        table = Candidates(np.arange(types + 1) * CANDIDATES, candidates)
        self.selection = VocabularySelection(table, COMMON, CANDIDATES, types)
        torch.manual_seed(1)
        params = preset_params(options.preset).model
        self.model = Seq2Seq(params, types, types, PAD, 0.1, plain_output=True).to(self.device)

    def translation(self, beam_size: int) -> dict[str, Work]:
        """Return functions that translate the batch and return its words, without and with selection."""
        params = SEARCH.model_copy(update={"beam_size": beam_size, "min_length": self.words})
        search = BeamSearch(params, keep_attention=False)
        source = torch.from_numpy(self.source).to(self.device)
        limits = [self.words] * len(source)
        model = StepwiseModel(self.model)

        def translate_selected() -> int:
            types = torch.from_numpy(self.selection.tokens(self.source)).to(self.device)
            return len(search.search(model.restrict(types), source, limits)) * self.words

        return {
            "all": lambda: len(search.search(model, source, limits)) * self.words,
            "selected": translate_selected,
        }

    def training(self) -> dict[str, Work]:
        """Return functions that compute loss and gradients of the batch, without and with selection."""
        losses = SummedLoss(self.model, 0.0, softmax_loss)
        source, target = (torch.from_numpy(side).to(self.device) for side in (self.source, self.target))
        real = torch.arange(target.numel(), device=self.device)

        def gradients(types: torch.Tensor | None) -> int:
            """Compute loss and gradients over these target entries; return the words of the batch."""
            self.model.zero_grad()
            loss, _ = losses(source, target, real, types)
            loss.backward()
            return len(source) * self.words

        def selected_gradients() -> int:
            types = torch.from_numpy(self.selection.tokens(self.source, self.target))
            return gradients(types.to(self.device))

        return {"all": lambda: gradients(None), "selected": selected_gradients}

    def compare(self, name: str, works: dict[str, Work], rounds: int, report: Report) -> None:
        """Add a row to the table."""
        ways = {way: partial(measure_speed, work, self.device) for way, work in works.items()}
        measured = in_turns(ways, rounds).values()
        plain, selected = (np.array([speed.per_second for speed in speeds]) for speeds in measured)
        medians = [float(np.median(values)) for values in (plain, selected, selected / plain)]
        report.add(**dict(zip(COLUMNS, [name, *medians], strict=True)))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sizes of the model and of the batch."""
    add = parser.add_argument
    add("--preset", default="ablation-en-de", help="whose architecture to use")
    add("--types", type=int, default=160_000, help="vocabulary size of source and target")
    add("--sentences", type=int, default=32, help="of the batch")
    add("--words", type=int, default=25, help="of each sentence")
    add_common(parser, "beam_sizes", "device", rounds=3)


def measure(options: argparse.Namespace, report: Report) -> None:
    """Measure training, then translation by beam size."""
    bench = Bench(options)
    bench.model.train()
    report.table(COLUMNS)
    bench.compare("loss and gradients", bench.training(), options.rounds, report)
    in_training = bench.selection.report()
    bench.selection.batches = bench.selection.selected = 0
    bench.model.zero_grad()
    fold_weight_norm(bench.model)
    bench.model.eval().requires_grad_(False)
    for beam_size in options.beam_sizes:
        works = bench.translation(beam_size)
        bench.compare(f"translation, beam {beam_size}", works, options.rounds, report)
    print(f"\nTraining: {in_training}\nTranslation: {bench.selection.report()}")


main = program(__doc__, add_options, measure)

if __name__ == "__main__":
    main()
