"""A dvc.lock that was cut short by a kill."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipelines.repair.__main__ import main
from pipelines.repair.clone import repair

WHOLE = """\
schema: '2.0'
stages:
  download:
    cmd: python toy.py data/raw
    params:
      params.yaml:
        download.train:
        - kind: generated
          seed:
    outs:
    - path: data/raw
      hash: md5
      md5: 000b479d2abea2df788d16fef1d5abf9.dir
      size: 72
      nfiles: 1
  train@1:
    cmd: >-
      python toy.py
      data/trained/1
    deps:
    - path: data/raw
      hash: md5
      md5: 000b479d2abea2df788d16fef1d5abf9.dir
      size: 72
      nfiles: 1
    outs:
    - path: data/trained/1.json
      hash: md5
      md5: d7331409e5c4ad034becca526011dd94
      size: 85
"""
CUTS = sorted({*range(0, len(WHOLE), 7), *(i + 1 for i, sign in enumerate(WHOLE[:-1]) if sign == "\n")})
BEGINS = [WHOLE.index(f"  {name}:\n") for name in ("download", "train@1")]


def parsed(path: Path) -> dict[str, Any]:
    """Return the stages as DVC reads them."""
    content = YAML(typ="safe").load(path.read_text())
    return dict(content["stages"]) if content else {}


@pytest.mark.fault("damage")
@pytest.mark.parametrize("with_copy", [False, True])
def test_wherever_it_is_cut_whole_stages_are_left(with_copy: bool, tmp_path: Path) -> None:
    """Half a number or a list without its end must not pass for the record of a stage."""
    path, wanted = tmp_path / "dvc.lock", YAML(typ="safe").load(WHOLE)["stages"]
    path.write_text(WHOLE)
    assert repair(tmp_path) == []
    copy = tmp_path / ".dvc" / "tmp" / "dvc.lock.whole"
    assert copy.read_text() == WHOLE
    for end in CUTS:
        copy.write_text(WHOLE if with_copy else "")
        path.write_text(WHOLE[:end])
        if repair(tmp_path):
            whole = 2 if with_copy else sum(end > begin for begin in BEGINS[1:])
            found = parsed(path) if path.exists() else {}
            assert list(found.items()) == list(wanted.items())[:whole], end
        else:  # cut at the end of a line: what is left is correct, and DVC notices what is missing
            name, last = parsed(path).popitem()
            assert "outs" not in last or last == wanted[name], end


def test_an_intact_file_is_not_touched(tmp_path: Path) -> None:
    """An intact file needs no repair, and git's conflict markers are for the user to resolve."""
    marked = "stages:\n<<<<<<< HEAD\n  a: 1\n=======\n  a: 2\n>>>>>>> other\n"
    for text in (WHOLE, marked, "schema: '2.0'\nstages: {}\n"):
        (tmp_path / "dvc.lock").write_text(text)
        assert repair(tmp_path) == []
        assert (tmp_path / "dvc.lock").read_text() == text


def test_the_command_says_what_it_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make repro` runs the command before DVC, and users must learn what it changed."""
    monkeypatch.chdir(tmp_path)
    assert main() == 0
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    (tmp_path / "dvc.lock").write_text(WHOLE[:-4])
    assert main() == 0
    assert (
        "dvc.lock was truncated by a kill; kept 1 stages, took 0 from the last copy"
        in capsys.readouterr().err
    )
