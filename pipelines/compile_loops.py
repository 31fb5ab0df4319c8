"""Compile the library's loops side by side: `python -m pipelines.compile_loops`, a part of `make install`.

What is compiled is kept on disk. Without this, each loop is compiled at its first use, on one core. No two
processes here use the same loop for the same types: both would compile it.
"""

import contextlib
import io
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import torch
from torch import nn

from convs2s.base.code_folders import chosen_folder
from convs2s.base.compilation import CHOICE
from convs2s.base.files import write_lines
from convs2s.engine import loops
from convs2s.engine.train.layers import (
    FastDropout,
    FastGluConvolution,
    FastMultistepAttention,
    fast_softmax_loss,
)
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.model.glu_block import GluConvolution
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.multistep_attention import MultistepAttention
from convs2s.model.precision import Precision
from convs2s.model.seq2seq import Seq2Seq
from convs2s.search.beam_search import BeamSearch
from convs2s.search.choose_model import choose_model
from convs2s.text.alignment.fast_align import align
from convs2s.text.alignment.word_ids import number_words
from convs2s.train.choose_layers import replace_modules
from convs2s.train.loss import SummedLoss
from pipelines.preset import preset_params

PARAMS = preset_params("tatoeba-en-de")
BATCH = torch.tensor([[3, 4, EOS], [4, EOS, PAD]]).repeat(50, 1)  # items for several threads in each loop


def build_model() -> Seq2Seq:
    return Seq2Seq(PARAMS.model, 5, 5, PAD, dropout=0.1)


def train() -> None:
    """Compute a gradient."""
    model = build_model()
    replace_modules(model, GluConvolution, FastGluConvolution)
    replace_modules(model, MultistepAttention, FastMultistepAttention)
    replace_modules(model, nn.Dropout, FastDropout)
    losses = SummedLoss(model, 0.1, fast_softmax_loss)
    real = BATCH.flatten().nonzero()[:, 0]  # indices of the tokens that are not padding
    for is_half in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_half):
            loss, _ = losses(BATCH, BATCH, real, None)
        loss.backward()


@torch.inference_mode()
def translate() -> None:
    """Translate a batch."""
    model = build_model().eval()
    fold_weight_norm(model)
    for precision in get_args(Precision):
        engine = choose_model(model, precision, torch.device("cpu"))
        BeamSearch(PARAMS.translate, keep_attention=False).search(engine, BATCH, [5] * len(BATCH))


def align_words() -> None:
    """Align two sentence pairs."""
    with TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        path = Path(folder, "words")
        write_lines(path, ["a b", "b"])
        corpus, _ = number_words(path, path, Path(folder))
        list(align(corpus, PARAMS.align.iterations, Path(folder)))


def main() -> None:
    """Use each loop with each type of its arguments."""
    chosen_folder(CHOICE)  # warns of it here, and not once in each process
    torch.set_num_threads(2)  # so that loops are shared, too
    loops.WORTH_A_THREAD = 1
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        for work in [pool.submit(use) for use in (train, translate, align_words)]:
            work.result()


if __name__ == "__main__":
    main()
