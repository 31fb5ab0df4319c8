"""BLEU on further test sets, by models that the pipeline packaged; the sets are played."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.package.translator import Translator, load
from convs2s.score.corpus_scores import bleu
from convs2s.text.sources.part import Part, RawPair
from pipelines.results import further_sets
from tests.package.small_package import write_small_package
from tests.presets import rendered

ROOT = Path(__file__).parents[2]
SOURCES = [
    "das Haus .",
    "noch ein Hund .",
    "Maus",
    "die Maus ist aus .",
    "und der Hund",
    "ein Haus , noch eins",
]
SETS: dict[str, list[tuple[str, str]]] = {}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models of two seeds, and sets whose references each of several searches has found some of."""
    folder = tmp_path / "data"

    def played(name: str, languages: tuple[str, str], downloads: Path) -> Part:
        assert (languages, downloads.name) == (("en", "de"), "sacrebleu")
        if name not in SETS:
            raise ValueError(f"sacreBLEU knows no test set {name!r}.")
        pairs = (RawPair(*pair) for pair in SETS[name])
        return Part(name, pairs, {"kind": "sacrebleu", "name": name})

    monkeypatch.setattr(further_sets, "sacrebleu_part", played)
    for seed, phase in (("1", 0.0), ("10", 4.07)):
        package = write_small_package(folder / "made" / seed, phase=phase)
        (folder / "models").mkdir(exist_ok=True)
        package.rename(folder / "models" / seed)
    searches = [translated(folder, "1"), translated(folder, "1", "10")]
    searches += [translated(folder, "10")]
    for name, lines in (("wmt14", 4), ("wmt14/full", 6)):
        SETS[name] = [(SOURCES[i], searches[i % 3][i]) for i in range(lines)]
    (folder / "tuned" / "ensemble").mkdir(parents=True)
    (folder / "tuned" / "ensemble" / "alpha.json").write_text("{}")
    return folder


def translated(data: Path, *seeds: str) -> list[str]:
    return load([data / "models" / seed for seed in seeds]).translate(SOURCES)


def wanted(data: Path, name: str, *seeds: str) -> float:
    references = [target for _, target in SETS[name]]
    return bleu(translated(data, *seeds)[: len(references)], references).value


def test_every_model_and_their_ensemble_are_scored_on_every_set(data: Path) -> None:
    """In the order of seeds, with the search of the model folders."""
    table, sets = further_sets.score(["wmt14", "wmt14/full"], [1, 10], data)
    assert list(table.index) == ["seed 1", "seed 10", "mean", "standard deviation", "ensemble"]
    for name in SETS:
        members = [wanted(data, name, seed) for seed in ("1", "10")]
        assert len({*members, wanted(data, name, "1", "10")}) == 3
        assert table[name]["seed 1":"seed 10"].tolist() == pytest.approx(members)
        assert table[name]["mean"] == pytest.approx(sum(members) / 2)
        assert table[name]["standard deviation"] == pytest.approx(abs(members[0] - members[1]) / 2**0.5)
        assert table[name]["ensemble"] == pytest.approx(wanted(data, name, "1", "10"))
    assert [(one.name, one.lines) for one in sets] == [("wmt14", 4), ("wmt14/full", 6)]


def test_an_ensemble_has_its_tuned_alpha(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of its first member; members have their own, which their folders carry."""
    tuned = {"alpha": 0.7, "development_bleu": 1.0}
    (data / "tuned" / "ensemble" / "alpha.json").write_text(json.dumps(tuned))
    asked: list[tuple[str | list[str], dict[str, Any]]] = []

    def noting(folders: Path | list[Path], **search: Any) -> Translator:
        asked.append((folders.name if isinstance(folders, Path) else [one.name for one in folders], search))
        return load(folders, **search)

    monkeypatch.setattr(further_sets, "load", noting)
    further_sets.score(["wmt14"], [1, 10], data)
    assert asked == [("1", {}), ("10", {}), (["1", "10"], {"alpha": 0.7})]


def test_a_score_comes_with_its_test_set_and_signature(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One seed has no mean and no ensemble, though models of seeds that were there before remain."""
    work_in(data, monkeypatch, seeds="[1]")
    assert further_sets.main(["wmt14"]) == 0
    head, row, _, identity, signature = capsys.readouterr().out.rstrip("\n").split("\n")
    assert head.split() == ["wmt14"]
    assert row.split() == ["seed", "1", str(round(wanted(data, "wmt14", "1"), 2))]
    assert identity.startswith("wmt14: 4 lines, sha256 ")
    assert signature.startswith("BLEU nrefs:1|case:mixed|eff:no|tok:13a|")


def test_what_is_missing_is_named(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On one line, without a traceback."""
    work_in(data, monkeypatch, seeds="[1]")
    assert further_sets.main(["wmt"]) == 1
    assert capsys.readouterr().err == "further_sets: sacreBLEU knows no test set 'wmt'.\n"
    work_in(data, monkeypatch, seeds="[7]")
    assert further_sets.main(["wmt14"]) == 1
    assert "further_sets: data/models/7" in capsys.readouterr().err


def work_in(data: Path, monkeypatch: pytest.MonkeyPatch, seeds: str) -> None:
    """Work in a repository whose data folder this is."""
    text = rendered("generated")
    assert "seeds: [1]" in text
    (data.parent / "params.yaml").write_text(text.replace("seeds: [1]", f"seeds: {seeds}"), encoding="utf-8")
    monkeypatch.chdir(data.parent)
