"""Speed of translation on the CPU with the model of §5.1, and with CTranslate2's int8 Transformer-base.

    python -m benchmarks.translate_large --beam-sizes 1 5

translates a batch of random sentences with each in turns. Weights are random, and all translations get as
many tokens as the source. It prints target tokens per second of processor time (median over rounds, minimum
and maximum), and the ratio to CTranslate2, if that is installed (pip install ctranslate2). `selected`
considers only some target tokens, drawn at random.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.ctranslate2_peer import Peer, has_ctranslate2
from benchmarks.machine import Work, fast_dtypes, in_turns, machine, print_table, speeds_as_json, write_report
from benchmarks.train_step import narrow
from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.load_words import choose_model
from convs2s.decode.search import SearchModel
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.precision import Precision
from convs2s.model.seq2seq import Seq2Seq
from pipelines.preset import preset_params

CPU = torch.device("cpu")
PEER = "CTranslate2 int8"
COLUMNS = ("beam, system", "tokens/s", "lowest", "highest", "ratio")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write."""
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    about = {"machine": machine(["numba", "ctranslate2"]), "options": vars(options) | {"json": None}}
    print(", ".join(f"{key} {value}" for key, value in about["machine"].items()))
    results = []
    with tempfile.TemporaryDirectory() as folder:
        systems = ours(options) | (theirs(options, Path(folder)) if has_ctranslate2() else {})
        for beam_size in options.beam_sizes:
            ways: dict[str, Work] = {name: partial(work, beam_size) for name, work in systems.items()}
            for name, speeds in in_turns(ways, options.rounds, CPU).items():
                results.append({"beam_size": beam_size, "system": name, "tokens": speeds_as_json(speeds)})
    print_table(COLUMNS, table_rows(results))
    if options.json:
        write_report(options.json, about, results)


def random_model(options: argparse.Namespace, precision: Precision) -> SearchModel:
    """Return a model on the CPU with random weights that never writes EOS unless forced to."""
    torch.manual_seed(1)
    params = narrow(preset_params(options.preset).model, options.channels)
    model = Seq2Seq(params, options.entries, options.entries, PAD, dropout=0.0)
    fold_weight_norm(model)
    model.output_layer.bias.data[EOS] = -1e4
    return choose_model(model.eval().requires_grad_(False), precision, CPU)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="wmt14-en-de-paper", help="whose architecture to use")
    parser.add_argument("--channels", type=int, help="of all layers; by default the preset's")
    parser.add_argument("--entries", type=int, default=40_000, help="of both vocabularies")
    parser.add_argument("--selected", type=int, default=4000, help="target tokens of the last system")
    parser.add_argument("--sentences", type=int, default=128, help="of the batch")
    parser.add_argument("--tokens", type=int, default=26, help="per sentence, not counting EOS")
    parser.add_argument("--precisions", nargs="+", default=[*fast_dtypes(CPU), "int8"])
    parser.add_argument("--beam-sizes", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def ours(options: argparse.Namespace) -> dict[str, Any]:
    """Return functions that translate the batch with a given beam, by the name of the system."""
    random = np.random.default_rng(1)
    ids = random.integers(3, options.entries, (options.sentences, options.tokens + 1))
    ids[:, -1] = EOS
    source = torch.from_numpy(ids)
    drawn = 3 + random.permutation(options.entries - 3)[: options.selected - 3]
    selected = torch.from_numpy(np.sort(np.concatenate([np.arange(3), drawn])))
    found: dict[str, Any] = {}
    for precision in options.precisions:
        model = random_model(options, precision)
        found[f"ours {precision}"] = partial(search, model, source)
    found[f"ours {precision}, {options.selected:,} selected"] = partial(
        search, model.restrict(selected), source
    )
    return found


def search(model: SearchModel, source: torch.Tensor, beam_size: int) -> float:
    """Translate a batch; return the tokens of the best hypotheses, including EOS, as in the source."""
    beam = BeamSearch(beam_size, 1.0, 1, 1, legacy_eos=False, keep_attention=False)
    limits = [source.shape[1] - 1] * len(source)
    return float(sum(len(best.tokens) for best, *_ in beam.search(model, source, limits)))


def theirs(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the same for CTranslate2."""
    peer = Peer(folder / "model", options.entries, options.threads)
    words = np.random.default_rng(1).choice(peer.words, (options.sentences, options.tokens)).tolist()
    return {PEER: lambda beam_size: peer.translate(words, beam_size, options.tokens)}


def table_rows(results: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    """Return the rows of the table."""
    rows = [(one["beam_size"], one["system"], one["tokens"]["per_processor_second"]) for one in results]
    peers = {beam_size: speed["median"] for beam_size, system, speed in rows if system == PEER}
    return [
        (f"{beam_size}, {system}", *speed.values(), speed["median"] / peers[beam_size] if peers else "")
        for beam_size, system, speed in rows
    ]


if __name__ == "__main__":
    main()
