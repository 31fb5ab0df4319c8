"""docs/results.md is right about each result: its command gives the parameters that were recorded."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.config.load import load_params
from pipelines.preset.__main__ import main as write_preset
from pipelines.preset.overrides import overrides_of
from pipelines.preset.render import EXPERIMENTS, preset_names, preset_params
from pipelines.results.commands import MACHINES, command, of_preset, recorded_params
from pipelines.results.paper import RowRun, read_paper, read_table
from pipelines.results.records import RunRecord, SweepRecord, read_records
from tests.preset_servers import servers
from tests.test_end_to_end import run_all
from tests.test_presets_at_toy_size import toy

RECORDS = read_records(EXPERIMENTS / "records")
PAGE = (EXPERIMENTS.parent / "docs" / "results.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"make preset NAME=(?P<name>\S+)( SET=\S.*)? && make (repro|sweep TABLE=(?P<table>\w+))")


def run_preset(line: str) -> None:
    """Do the same as the command's `make preset`, in the working directory."""
    words = shlex.split(line.split(" && ", maxsplit=1)[0])
    assert words[:2] == ["make", "preset"]
    variables = dict(word.split("=", 1) for word in words[2:])
    # As in the recipe, where the shell splits $(SET) into words.
    assert write_preset([variables["NAME"], *shlex.split(variables.get("SET", ""))]) == 0


@pytest.mark.parametrize("name", RECORDS)
def test_a_records_command_gives_its_parameters(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command must give all that were recorded; keys newer than the record have the preset's value."""
    monkeypatch.chdir(tmp_path)
    record = RECORDS[name]
    run_preset(record.command)
    found = recorded_params(load_params())
    assert {key: found[key] for key in record.params} == record.params
    assert {key for key in found if found[key] != of_preset(record.preset)[key]} <= set(record.params)
    if isinstance(record, RunRecord):
        assert list(map(str, found["train.seeds"])) == list(record.metrics.seeds)
        assert record.command.endswith(" && make repro")
    else:
        assert record.command.endswith(f" && make sweep TABLE={record.table}")


@pytest.mark.parametrize("name", [name for name, r in RECORDS.items() if isinstance(r, SweepRecord)])
def test_a_sweep_can_begin_with_its_recorded_parameters(name: str) -> None:
    """With the recorded parameters, every row of the table must still give a valid model."""
    record = RECORDS[name]
    assert isinstance(record, SweepRecord)
    params = preset_params(record.preset)
    base = {k.removeprefix("model."): v for k, v in record.params.items() if k.startswith("model.")}
    model = type(params.model).model_validate(base)
    table = read_table(record.table)
    assert {row.row for row in record.rows} <= {row.row for row in table.rows}
    for row in table.rows:
        changed = {key.removeprefix("model."): value for key, value in row.overrides(model).items()}
        assert type(model).model_validate(base | changed)


def test_the_page_prints_the_command_of_every_record() -> None:
    """The command is next to the scores; every command on the page starts something that exists."""
    for name, record in RECORDS.items():
        lines = [line for line in PAGE.split("\n") if f"{name}.json" in line]
        assert len(lines) >= 2
        assert all(f"`{record.command}`" in line for line in lines), name
    found = {text for text in re.findall(r"`([^`]+)`", PAGE) if text.startswith("make preset NAME")}
    assert len(found) > 20
    tables = {None, *read_paper(EXPERIMENTS)}
    for text in found:
        matched = COMMAND.fullmatch(text)
        assert matched is not None, text
        assert matched["name"] in preset_names()
        assert matched["table"] in tables


def test_what_differs_from_the_preset_is_in_the_command() -> None:
    """The command is derived, even for a list of sources, null, and text that looks like a number."""
    preset = of_preset("multi30k-en-de")
    assert command("multi30k-en-de", preset, "repro") == "make preset NAME=multi30k-en-de && make repro"
    changed = {"package.name": "7", "train.patience": 3, "download.train": [{"kind": "files", "tsv": None}]}
    line = command("multi30k-en-de", preset | changed, "repro")
    assert overrides_of(line.split(" && ")[0]) == changed
    assert not MACHINES & preset.keys()


def test_the_command_of_an_ensembles_row_asks_for_one() -> None:
    """The preset may not ask for an ensemble."""
    run = RowRun(preset="gigaword", of="ensemble", seeds=3)
    assert run.command == 'make preset NAME=gigaword SET="evaluate.ensembles=[all]" && make repro'


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, r in RECORDS.items() if isinstance(r, RunRecord)])
def test_a_records_command_runs_at_toy_size(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the recorded settings of text and training, the pipeline gives as many seeds and all scores."""
    monkeypatch.chdir(tmp_path)
    record = RECORDS[name]
    assert isinstance(record, RunRecord)
    run_preset(record.command)
    content: Any = YAML(typ="safe", pure=True).load(Path("params.yaml").read_text(encoding="utf-8"))
    with servers() as played:
        run_all(toy(content, played, tmp_path, record.params["train.seeds"]), tmp_path / "data")
    metrics = json.loads((tmp_path / "data/evaluation/metrics.json").read_text(encoding="utf-8"))
    assert set(metrics["seeds"]) == set(record.metrics.seeds)
    assert set(metrics["mean"]) == set(record.metrics.mean)
    assert ("ensemble" in metrics) == (record.metrics.ensemble is not None)
    assert ("without_replacement" in metrics) == (record.metrics.without_replacement is not None)
