"""The default preset from text to BLEU: the pipeline's stages, one after the other in this process.

Neither DVC nor Prefect is needed. Preparing the text is the host's work; training and translation are the
GPU's. What the stages make, the model included, stays in --out/data.
"""

import argparse
import contextlib
import io
import json
import os
import shlex
import shutil
import time
from pathlib import Path

import torch

from benchmarks.gpu_report.shared import part
from benchmarks.harness import Report, wait
from convs2s.config.load import parse_yaml, read_text
from pipelines.later_keys import list_items
from pipelines.preset import apply_overrides, render_preset
from pipelines.stages.__main__ import start
from pipelines.stages._declared import fill_templates, split_item

ROOT = Path(__file__).parents[2]
READ = ("convs2s", "pipelines", "dvc.yaml", ".dvcignore", "data/tatoeba-en-de", "data/none")
"""What the stages read."""
TOY = {
    "download.train.pairs": 300,
    "vocabulary.source_size": 200,
    "vocabulary.target_size": 200,
    "filter.max_overlap": None,
    "train.max_epochs": 1,
    "translate.beam_size": 1,
}


def prepare(folder: Path, toy: bool) -> None:
    """Make a folder in which stages run, with the default preset as its params.yaml."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    for name in READ:
        (folder / name).symlink_to(ROOT / name)
    text, _ = apply_overrides(render_preset("tatoeba-en-de"), TOY if toy else {})
    (folder / "params.yaml").write_text(text, encoding="utf-8")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the folder."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made anew")


def measure(options: argparse.Namespace, device: torch.device, report: Report) -> None:
    """Run all stages, each with its seconds; then show the cost of the training, and the scores."""
    prepare(options.out, options.toy)
    os.chdir(options.out)
    params = parse_yaml(read_text(Path("params.yaml")), "params.yaml")
    stages = parse_yaml(read_text(Path("dvc.yaml")), "dvc.yaml")["stages"]
    report.table(("stage", "seconds"), "Stages")
    for item in list_items(stages, params):
        name, value = split_item(item)
        command = fill_templates(stages[name]["cmd"], params, value).replace("$DVC_STAGE", item)
        begin = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):  # progress, between the rows
            start(name, shlex.split(command)[4:])  # without python -m pipelines.stages NAME
        wait(device)
        report.add(stage=item, seconds=time.perf_counter() - begin)
    report.table(("what", "value"), "Results")
    costs, metrics = (
        json.loads(Path("data", name).read_text(encoding="utf-8"))
        for name in ("costs/1.json", "evaluation/metrics.json")
    )
    for what, value in {**costs, **metrics["mean"]}.items():
        report.add(what=what, value=value)


main = part(__doc__, measure, add_options)

if __name__ == "__main__":
    main()
