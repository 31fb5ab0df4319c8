"""The flow `sweep`: parallel rows, shared stages run once, a table at the end."""

from collections import Counter
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from pydantic import ValidationError

from pipelines.flows.sweep import SweepParams
from tests.flows import toy
from tests.flows.server import Server


def test_rows_are_the_list_times_the_grid() -> None:
    """An ablation table is a list, a hyperparameter search is a grid, and the two can be combined."""
    both = SweepParams(configurations=[{"a": 1}, {"b": 2}], grid={"c": [3, 4]})
    assert both.rows() == [{"a": 1, "c": 3}, {"a": 1, "c": 4}, {"b": 2, "c": 3}, {"b": 2, "c": 4}]
    assert SweepParams(grid={"c": [3], "d": [5, 6]}).rows() == [{"c": 3, "d": 5}, {"c": 3, "d": 6}]
    assert SweepParams(configurations=[{}, {"a": 1}]).rows() == [{}, {"a": 1}]
    with pytest.raises(ValidationError, match="nothing to sweep over"):
        SweepParams()
    with pytest.raises(ValidationError, match="table: its rows are in experiments/tables/; wanted neither"):
        SweepParams(table="table5", grid={"c": [3]})


@pytest.mark.flows
def test_rows_of_a_grid_share_stages(server: Server, repo: Path) -> None:
    """Of four rows, two train differently: each stage runs once per distinct variant."""
    toy.behave(repo, train_1={"seconds": 2})
    lock = (repo / "params.yaml").read_bytes()
    run = server.run_flow(
        repo,
        "sweep",
        name="drops",
        parallel=3,
        grid={"train.dropout": [0.1, 0.3], "evaluate.examples": [5, 6]},
        seeds=[1],
    )
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    executed = [name.split()[0] for name, state in server.states(run).items() if state == "Executed"]
    assert Counter(executed) == {"download": 1, "align": 1, "train@1": 2, "evaluate": 4}
    assert len(server.states(run)) == 16
    table = pd.read_csv(repo / "data" / "sweeps" / "drops.csv")
    assert table["train.dropout"].tolist() == [0.1, 0.1, 0.3, 0.3]
    assert table["evaluate.examples"].tolist() == [5, 6, 5, 6]
    assert table["bleu"].notna().all()
    shown = pd.read_csv(StringIO(toy.dvc(repo, "exp", "show", "--csv", "--hide-workspace", "-A")))
    by_dvc = shown.set_index("Experiment")["bleu"].astype(str)
    assert [float(by_dvc[name]) for name in table["experiment"]] == table["bleu"].tolist()
    assert "4-sweep-drops" in server.artifacts(run)
    assert (repo / "params.yaml").read_bytes() == lock
    assert not list((repo / ".dvc" / "tmp" / "flows").iterdir())


TABLE = """
title: Positions
section: §0
row: positions
column: null
rows:
  - {row: with, source_positions: true, perplexity: "6.64", bleu: "21.7"}
  - {row: without, source_positions: false, perplexity: "6.69", bleu: "21.3"}
  - {row: broken, target_positions: false, bleu: "21.5"}
"""


# A training leaves its cost as a real one does: 600 target tokens in 4 seconds, or 500 with fewer positions.
COSTS = """
if name.startswith("train"):
    weights = out / "model" / "weights.safetensors"
    weights.parent.mkdir()
    weights.write_text(sys.argv[-1])
    costs = pathlib.Path("data/checkpoints", sys.argv[1].split("/")[-1], "costs")
    costs.mkdir(parents=True)
    session = dict(device="A CPU", unit="CPU core", count=2, torch="2.13.0", first=0, last=9, seconds=7.0)
    session |= dict(target_tokens=500 + 100 * sys.argv[-1].endswith("true-true"), training_seconds=4.0)
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    (costs / (digest + ".json")).write_text(json.dumps([session]))
"""


@pytest.mark.flows
def test_a_table_of_the_paper_shows_our_figures_next_to_its_own(server: Server, repo: Path) -> None:
    """As a table, a picture and a CSV, with the paper's row names; a row whose training fails says why."""
    (repo / "experiments" / "tables").mkdir(parents=True)
    (repo / "experiments" / "tables" / "tiny.yaml").write_text(TABLE, encoding="utf-8")
    breaks = 'import sys\nif sys.argv[-1].endswith("true-false"):\n    sys.exit("toy: out of memory")\n'
    (repo / "toy.py").write_text(breaks + toy.PLAYER + COSTS)
    overrides = {"train.seeds": [1], "model.encoder_kernels": [5, 5, 5]}
    run = server.run_flow(repo, "sweep", table="tiny", parallel=3, overrides=overrides)
    found = server.flow_run(run)
    assert found["state_type"] == "FAILED", found["state"]
    assert "1 failed, 1 not run" in found["state"]["message"]
    assert found["name"].startswith("tiny, ")
    assert {"train@1 with", "train@1 without", "train@1 broken"} <= set(server.states(run))
    everything = pd.read_csv(repo / "data" / "sweeps" / "tiny.csv").set_index("row")
    assert everything["train.seeds"].tolist() == ["[1]"] * 3
    assert everything["model.encoder_kernels"].tolist() == ["[5, 5, 5]"] * 3
    assert everything["failed"].isna().tolist() == [True, True, False]
    scores = everything["mean.bleu_tokenized"]
    assert scores["with"] != scores["without"]
    speeds = everything["target_tokens_per_second"]
    assert (speeds["with"], speeds["without"]) == (150.0, 125.0)
    shown = server.artifacts(run)
    text = shown["5-table-tiny"]["data"]
    assert f"| without | 6.69 | not run | 21.3 | {scores['without']:.2f} | 0 | 125 |" in text
    assert "| broken | - | failed | 21.5 | failed | 0 | - |" in text
    assert "- broken failed: train@1 ended with status" in text
    assert "toy: out of memory" in text
    assert shown["6-picture-tiny"]["data"].startswith("data:image/png;base64,")
