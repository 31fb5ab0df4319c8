"""The flow `sweep`: parallel rows, shared stages run once, a table at the end."""

import json
from collections import Counter
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from pipelines.flows.sweep import add_overrides
from tests.flows import toy
from tests.flows.server import Server

TABLE = """
row: positions
rows:
  - {row: with, set: {model.source_positions: true}, perplexity: 6.64, bleu: 21.7}
  - {row: without, set: {model.source_positions: false}, perplexity: 6.69, bleu: 21.3}
  - {row: broken, set: {model.target_positions: false}, bleu: 21.5}
"""


def test_a_row_goes_before_overrides_in_value_and_order() -> None:
    """Rows that all began with the same override would have the same name once names are cut."""
    changes = add_overrides({"seeds": [1], "train.dropout": 0.3}, {"tune.alphas": [1.0], "seeds": [1, 2]})
    assert list(changes.items()) == [("seeds", [1]), ("train.dropout", 0.3), ("tune.alphas", [1.0])]


@pytest.mark.flows
def test_a_table_of_the_paper_shows_our_figures_next_to_its_own(server: Server, repo: Path) -> None:
    """Rows have the paper's names, shared stages run once, and a row whose training fails says why."""
    (repo / "experiments" / "tables").mkdir(parents=True)
    (repo / "experiments" / "tables" / "tiny.yaml").write_text(TABLE, encoding="utf-8")
    breaks = 'import sys\nif sys.argv[-1].endswith("true-false"):\n    sys.exit("toy: out of memory")\n'
    (repo / "toy.py").write_text(breaks + toy.PLAYER)
    before = (repo / "params.yaml").read_bytes()
    run = server.run_flow(repo, "sweep", table="tiny", parallel=3, overrides=["seeds=[1]"])
    flow = server.flow_run(run)
    assert flow["state_type"] == "FAILED", flow["state"]
    assert "1 Failed, 1 NotReady" in flow["state"]["message"]
    assert flow["name"].startswith("tiny, ")
    executed = [name.split()[0] for name, state in server.states(run).items() if state == "Executed"]
    assert Counter(executed) == {"download": 1, "align": 1, "train@1": 2, "evaluate": 2}
    table = pd.read_csv(repo / "data" / "sweeps" / "tiny.csv").set_index("positions")
    assert table["seeds"].tolist() == ["[1]"] * 3
    names = [name.rpartition("-")[0] for name in table["experiment"]]  # a row's own values come first
    assert names[0] == "tiny-source-positions-True-seeds-1" and len({*names}) == 3
    assert table["bleu_tokenized, paper"].tolist() == [21.7, 21.3, 21.5]
    assert table["bleu_tokenized"].isna().tolist() == table["failed"].notna().tolist() == [False, False, True]
    assert "toy: out of memory" in table["failed"]["broken"]
    assert table["bleu_tokenized"]["with"] != table["bleu_tokenized"]["without"]
    shown = json.loads(server.artifacts(run)["sweep-tiny"])
    assert [row["positions"] for row in shown] == ["with", "without", "broken"]
    kept = pd.read_csv(StringIO(toy.dvc(repo, "exp", "show", "--csv", "--hide-workspace", "-A")))
    by_dvc = kept.set_index("Experiment")["bleu"]
    assert [float(by_dvc[name]) for name in table["experiment"][:2]] == table["bleu"][:2].tolist()
    assert (repo / "params.yaml").read_bytes() == before
    (left,) = (repo / ".dvc" / "tmp" / "flows").iterdir()  # with the checkpoints of the row that failed
    assert left.name.startswith("tiny-") and left.name.rpartition("-")[0] in table["experiment"]["broken"]
