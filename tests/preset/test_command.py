"""`python -m pipelines.preset`: what it writes, prints and refuses to overwrite."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.config.load import load_params
from pipelines.preset.__main__ import main
from pipelines.preset.render import EXPERIMENTS, preset_names
from tests.presets import params_of, rendered

ROOT = EXPERIMENTS.parent
PARAMS = Path("params.yaml")


@pytest.fixture(autouse=True)
def _in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a git repository whose last commit has the default params.yaml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    PARAMS.write_text(rendered("tatoeba-en-de"), encoding="utf-8")
    git("init", "--quiet")
    commit()


def git(*arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *arguments], check=True)


def commit() -> None:
    git("add", "--all")
    git("commit", "--quiet", "--message", "as it is")


def files() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def edit(old: str = "dropout: 0.0", new: str = "dropout: 0.4") -> str:
    """Change a value of params.yaml; return the text."""
    text = PARAMS.read_text(encoding="utf-8")
    assert old in text
    PARAMS.write_text(text.replace(old, new), encoding="utf-8")
    return PARAMS.read_text(encoding="utf-8")


def test_a_preset_is_written_and_its_differences_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Users see which values change, by dotted name, as old -> new."""
    assert main(["multi30k-en-de"]) == 0
    assert load_params() == params_of("multi30k-en-de")
    printed = capsys.readouterr().out.split("\n")
    assert printed[0] == "params.yaml: 22 value(s) differ from preset multi30k-en-de"
    assert "  train.dropout: 0.0 -> 0.2" in printed
    assert "  train.anneal_after_epoch: 2 -> null" in printed
    assert '  package.name: "tatoeba-en-de" -> "multi30k-en-de"' in printed
    (train,) = (line for line in printed if line.startswith("  download.train: "))
    assert train.startswith('  download.train: [{"kind": "files", "source": null, "')
    assert len(train) < 150
    assert files() == [".git", "params.yaml"]


@pytest.mark.parametrize("committed", [False, True])
def test_edits_not_in_git_are_kept(committed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Only --force overwrites the only copy; committed edits are safe in git."""
    text = edit()
    if committed:
        commit()
        assert main(["multi30k-en-de"]) == 0
        return
    assert main(["multi30k-en-de"]) == 1
    assert PARAMS.read_text(encoding="utf-8") == text
    message = capsys.readouterr().err
    assert message.startswith(
        "params.yaml has edits that are not in git, so it was not overwritten. Commit it"
    )
    assert "make preset NAME=multi30k-en-de FORCE=1" in message
    assert main(["multi30k-en-de", "--force", "train.dropout=0.35"]) == 0  # in any order
    assert load_params().train.dropout == 0.35
    assert main(["multi30k-en-de", "--force"]) == 0
    assert PARAMS.read_text(encoding="utf-8") == rendered("multi30k-en-de")


def test_a_preset_is_written_with_other_values(capsys: pytest.CaptureFixture[str]) -> None:
    """The header has the command, so the file can be written again and overwriting it loses nothing."""
    assert main(["multi30k-en-de", "train.seeds=[1,2]", "translate.beam_size=7"]) == 0
    params, preset = load_params(), params_of("multi30k-en-de")
    assert (list(params.train.seeds), params.translate.beam_size) == ([1, 2], 7)
    assert params.model_copy(update={"train": preset.train, "translate": preset.translate}) == preset
    written = 'make preset NAME=multi30k-en-de SET="train.seeds=[1,2] translate.beam_size=7"'
    assert PARAMS.read_text(encoding="utf-8").startswith(f"# Preset multi30k-en-de, written by: {written}. ")
    assert main(["multi30k-en-de", "train.seeds=[3]"]) == 0
    edit("dropout: 0.2", "dropout: 0.4")
    assert main(["multi30k-en-de", "train.seeds=[4]"]) == 1
    assert 'make preset NAME=multi30k-en-de SET="train.seeds=[4]" FORCE=1' in capsys.readouterr().err


def test_other_values_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name or value must not get into params.yaml."""
    before = PARAMS.read_bytes()
    assert main(["multi30k-en-de", "train.droput=0.3"]) == 1
    assert main(["multi30k-en-de", "train.dropout=3"]) == 1
    assert PARAMS.read_bytes() == before
    first, second = capsys.readouterr().err.split("invalid overrides")
    assert "params.yaml has no train.droput" in first
    assert "train.dropout: found 3" in second


def test_an_edited_comment_is_an_edit() -> None:
    """A comment may be a user's note."""
    edit("# probability of dropping", "# 0.3 was worse")
    assert main(["multi30k-en-de"]) == 1


def test_a_preset_nobody_edited_is_overwritten() -> None:
    """A rendered preset need not be in git, because it can be written again; an edit of it cannot."""
    for name in ("multi30k-en-de", "own-data", "tatoeba-en-de", "own-data"):
        assert main([name]) == 0
        assert PARAMS.read_text(encoding="utf-8") == rendered(name)
    edit("dropout: 0.2", "dropout: 0.4")
    assert main(["tatoeba-en-de"]) == 1


def test_without_git_or_commit_only_presets_are_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else could be the only copy."""
    git("rm", "--quiet", "--cached", "params.yaml")
    git("-c", "core.hooksPath=", "commit", "--quiet", "--message", "untracked")
    edit()
    assert main(["multi30k-en-de"]) == 1
    shutil.rmtree(".git")
    assert main(["multi30k-en-de"]) == 1
    assert capsys.readouterr().err.count("not in git") == 2
    PARAMS.unlink()
    assert main(["multi30k-en-de"]) == 0
    assert main(["tatoeba-en-de"]) == 0


def test_without_the_program_git_edits_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without git, params.yaml may be the only copy."""
    monkeypatch.setenv("PATH", str(tmp_path))
    edit()
    assert main(["multi30k-en-de"]) == 1
    assert main(["multi30k-en-de", "--force"]) == 0


def test_edits_of_an_unknown_preset_are_kept() -> None:
    """The preset may be from another version of the project, so the file cannot be written again."""
    PARAMS.write_text("# Preset gone, written by: make preset NAME=gone\ntrain:\n  dropout: 0.5\n")
    assert main(["tatoeba-en-de"]) == 1


def test_another_file_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """--out leaves params.yaml alone, and protects edits of the other file in the same way."""
    before = PARAMS.read_bytes()
    assert main(["own-data", "--out", "mine/other.yaml"]) == 0
    assert load_params(Path("mine/other.yaml")) == params_of("own-data")
    Path("mine/other.yaml").write_text("mine: 1\n")
    assert main(["own-data", "--out", "mine/other.yaml"]) == 1
    assert PARAMS.read_bytes() == before
    assert "mine/other.yaml has edits that are not in git" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["train: [\n", "", "just text", "train:\n  dropout: 0.1\n  old_key: 3\n"])
def test_an_unreadable_or_old_file_can_be_replaced(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """This command is the way to fix it; keys that are missing or no longer exist are listed as such."""
    PARAMS.write_text(text)
    commit()
    assert main(["multi30k-en-de"]) == 0
    printed = capsys.readouterr().out
    assert "  train.momentum: (none) -> 0.99\n" in printed
    assert ("  train.old_key: 3 -> (none)\n" in printed) == ("old_key" in text)
    assert ("  train.dropout: 0.1 -> 0.2\n" in printed) == ("old_key" in text)


def test_a_crash_leaves_the_old_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is replaced as a whole or not at all."""
    before = PARAMS.read_bytes()

    def full_disk(path: Path, text: str, **_: object) -> None:
        path.write_bytes(text.encode()[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    assert main(["multi30k-en-de"]) == 1
    assert PARAMS.read_bytes() == before
    assert files() == [".git", "params.yaml"]


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each preset is on one line, with its title."""
    assert main([]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert [line.split()[0] for line in lines[: len(preset_names())]] == preset_names()
    assert "wmt14-en-de-paper    WMT'14 English to German as in the paper (§5.1, Table 1)." in lines


def test_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A typo must not change params.yaml."""
    before = PARAMS.read_bytes()
    assert main(["multi30k-en-dee"]) == 1
    assert "no preset 'multi30k-en-dee'; did you mean multi30k-en-de" in capsys.readouterr().err
    assert PARAMS.read_bytes() == before


def test_the_module_and_make_run_it() -> None:
    """The README gives both forms: python -m pipelines.preset NAME, and make preset NAME=... FORCE=1."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pipelines.preset", "multi30k-en-de"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert load_params() == params_of("multi30k-en-de")
    make = ["make", "--no-print-directory", "--dry-run", "--assume-old=install", "preset"]
    for more, wanted in (
        (["NAME=own-data"], "python -m pipelines.preset own-data"),
        (["NAME=own-data", "FORCE=1"], "python -m pipelines.preset own-data --force"),
        ([], "python -m pipelines.preset"),
    ):
        done = subprocess.run([*make, *more], cwd=ROOT, check=True, capture_output=True, text=True)
        assert done.stdout.split("\n")[-2].split() == wanted.split()
