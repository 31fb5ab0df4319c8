"""Presets: rendered to a whole params.yaml, with other values, and never over somebody's edits."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.config.load import flatten_values, load_params, parse_params
from pipelines import preset
from pipelines.overrides import apply_overrides, parse_override
from pipelines.preset import EXPERIMENTS, list_presets, main, preset_command, render
from tests.flows import toy
from tests.presets import params_of, rendered

ROOT = EXPERIMENTS.parent
PARAMS = Path("params.yaml")
DEFAULT = re.match(r"# Preset ([\w-]+)", (ROOT / "params.yaml").read_text(encoding="utf-8"))[1]  # type: ignore[index]
AWKWARD = [{"kind": "files", "source": 'it\'s $HOME/50% "of" a b', "tsv": None}]
COMMENT = re.compile(r"(?:^|\s)# (.*)")


def keys_of(text: str) -> dict[str, Any]:
    """Return the values of a file by dotted name."""
    content = YAML(typ="safe", pure=True).load(text) or {}
    return flatten_values(content)


def text_of(name: str) -> str:
    """Return the text of the base, or of a preset's own file."""
    file = "base.yaml" if name == "base" else f"presets/{name}.yaml"
    return (EXPERIMENTS / file).read_text(encoding="utf-8")


def lines_of(text: str) -> dict[str, str]:
    """Return the line of each key of a section, by dotted name."""
    section, found = "", {}
    for line in text.split("\n"):
        if match := re.match(r"(  )?(\w+):", line):
            section = section if match[1] else match[2]
            found[f"{section}.{match[2]}" if match[1] else section] = line
    return found


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_is_the_base_but_for_its_own_keys(name: str) -> None:
    """Keys, their order and comments are the base's; values, comments and the header are the preset's.

    A repeated value would not follow a new default; a comment has the meaning or the source.
    """
    base, own, whole = text_of("base"), text_of(name), rendered(name)
    assert [key for key, line in lines_of(whole).items() if "." in key and not COMMENT.search(line)] == []
    assert [key for key, value in keys_of(own).items() if value == keys_of(base)[key]] == []
    assert list(keys_of(whole)) == list(keys_of(base))
    assert keys_of(whole) == keys_of(base) | keys_of(own)
    assert lines_of(whole) == lines_of(base) | {
        key: line for key, line in lines_of(own).items() if "." in key or COMMENT.search(line)
    }
    header = own[: re.search(r"^\w", own, re.MULTILINE).start()].strip()  # type: ignore[union-attr]
    assert whole.startswith(
        f"# Preset {name}, written by: make preset NAME={name}. Edit it freely.\n#\n{header}\n\n"
    )
    assert set(COMMENT.findall(own)) <= set(COMMENT.findall(whole))
    assert parse_params(whole, name) == params_of(name)


def test_params_yaml_is_a_rendered_preset() -> None:
    """A new key goes into base.yaml only; `make preset` then writes params.yaml.

    The last commit's file will also do, because anybody who experiments has edited theirs.
    """
    command = ["git", "show", "HEAD:./params.yaml"]
    committed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout.decode()
    assert rendered(DEFAULT) in ((ROOT / "params.yaml").read_text(encoding="utf-8"), committed)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mine", "train:\n  dropuot: 0.3\n", r"train\.dropuot: unknown key.*did you mean dropout\?"),
        ("mine", "train:\n  dropout: 3.5\n", r"train\.dropout: .*3\.5"),
        ("mine", "train:\n  dropout: [0.3\n", r"is not valid YAML"),
        ("min", "", r"no preset 'min'; did you mean mine\?"),
        ("zzz", "", r"no preset 'zzz'; known here: mine"),
        ("../base", "", r"no preset '\.\./base'"),
    ],
)
def test_a_faulty_or_unknown_preset_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    """The error names the file, the key and what was expected, or similar names."""
    (tmp_path / "presets").mkdir()
    shutil.copy(EXPERIMENTS / "base.yaml", tmp_path)
    (tmp_path / "presets" / "mine.yaml").write_text(text)
    monkeypatch.setattr(preset, "EXPERIMENTS", tmp_path)
    with pytest.raises(ValueError, match=rf"(?s)^experiments/presets.*{message}"):
        render(name)


def test_only_the_lines_of_overrides_change() -> None:
    """Comments, nulls, quotes, long lines and indentation are kept; a list stays on its line."""
    before = rendered("wmt14-en-fr-paper")
    assert apply_overrides(before, {})[0] == before
    after, params = apply_overrides(before, {"seeds": [4, 5], "download.test.sources.0.source": "x"})
    changed = [pair for pair in zip(before.split("\n"), after.split("\n"), strict=True) if len({*pair}) > 1]
    values = [[line.split("#")[0].strip() for line in pair] for pair in changed]
    assert values[:1] == [["seeds: [1, 2, 3]", "seeds: [4, 5]"]]
    assert (list(params.seeds), values[1][1], len(values)) == ([4, 5], "source: x", 2)
    line = lines_of(before)["seeds"]
    over_lines = before.replace(line, line.replace("[1, 2, 3]", "") + "\n  - 1\n  - 2")
    after, params = apply_overrides(over_lines, {"seeds": [5, 6]})
    assert list(params.seeds) == [5, 6]
    assert lines_of(after)["seeds"].split("#")[1] == line.split("#")[1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("train.droput", r"(?s)train\.droput: unknown key.*did you mean dropout"),
        ("trian.dropout", r"has no trian\.dropout; did you mean train\.dropout\?"),
        ("droput", r"(?s)droput: unknown key.*known here: align, augment, candidates"),
        ("download.train.7.kind", r"has no download\.train\.7\.kind; did you mean download\.train\?"),
        (
            "download.train.sources.0.colums",
            r"download\.train\.sources\.0\.colums: unknown key.*did you mean columns",
        ),
        ("train.selection.common", r"has no train\.selection\.common; did you mean train\.selection\?"),
        ("package.name.0", r"has no package\.name\.0; did you mean package\.name\?"),
        ("train.dropout", r"(?s)params.yaml is invalid.*train\.dropout: expected less than 1"),
    ],
)
def test_wrong_overrides_are_refused(name: str, message: str) -> None:
    """They are typed by hand into a form or a command, so mistakes are likely."""
    with pytest.raises(ValueError, match=message):
        apply_overrides(rendered(DEFAULT), {name: 3})


@pytest.mark.parametrize(
    ("overrides", "command"),
    [
        ({}, "make preset NAME=x"),
        ({"a.b": [1, 2], "a.c": "word"}, "make preset NAME=x SET='a.b=[1,2] a.c=word'"),
        (
            {"a.b": None, "a.c": 1e-05, "a.d": ["all"]},
            "make preset NAME=x SET='a.b=null a.c=1e-05 a.d=[all]'",
        ),
        ({"a.b": ["all", "b"], "a.c": ["a,b", "1"]}, None),
        ({"a.b": "true", "a.c": "", "a.d": "10"}, None),
        ({"a.b": AWKWARD, "a.c": "$$ $(x) `y` é"}, None),
    ],
)
def test_overrides_survive_the_command_that_sets_them(overrides: dict[str, Any], command: str | None) -> None:
    """Values must pass through make and the shell unchanged, and text must stay text."""
    text = preset_command("x", overrides)
    assert command in {None, text}
    make = ["make", "--no-print-directory", "--dry-run", "--assume-old=install", *shlex.split(text)[1:]]
    recipe = subprocess.run([*make, "FORCE=1"], cwd=ROOT, check=True, capture_output=True, text=True)
    words = shlex.split(recipe.stdout.strip().split("\n")[-1])
    assert [*words[:4], words[-1]] == ["python", "-m", "pipelines.preset", "x", "--force"]
    assert dict(map(parse_override, words[4:-1])) == overrides


def test_a_list_with_spaces_is_an_error_with_advice(capsys: pytest.CaptureFixture[str]) -> None:
    """Make passes it on in two words."""
    with pytest.raises(SystemExit):
        main(["multi30k-en-de", "seeds=[1,", "2]"])
    assert "seeds=[1, is not valid YAML" in (said := capsys.readouterr().err)
    assert "a list is written without spaces: [1,2]" in said


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a git repository whose last commit has the default params.yaml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    PARAMS.write_text(rendered(DEFAULT), encoding="utf-8")
    toy.run(tmp_path, "git", "init", "--quiet")
    toy.commit(tmp_path)
    return tmp_path


def edit() -> str:
    """Change a comment in params.yaml; return the text."""
    text = PARAMS.read_text(encoding="utf-8").replace("# probability of dropping", "# 0.3 was worse")
    PARAMS.write_text(text, encoding="utf-8")
    return text


def test_edits_not_in_git_are_kept(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only --force overwrites the only copy, even of a comment; committed edits are safe in git."""
    text = edit()
    assert main(["multi30k-en-de", "seeds=[4]"]) == 1
    assert PARAMS.read_text(encoding="utf-8") == text
    message = capsys.readouterr().err
    assert message.startswith("params.yaml has edits that are not in git, so it was not overwritten.")
    assert "make preset NAME=multi30k-en-de SET='seeds=[4]' FORCE=1" in message
    assert main(["multi30k-en-de", "--force", "train.dropout=0.35"]) == 0  # in any order
    assert load_params().train.dropout == 0.35
    assert main(["own-data"]) == 1  # the value of SET is an edit, too
    toy.commit(repository)
    assert main(["own-data"]) == 0


@pytest.mark.usefixtures("repository")
def test_a_preset_nobody_edited_is_overwritten() -> None:
    """It can be written again; one of another version of the project cannot. Broken files are edits, too."""
    assert main(["multi30k-en-de"]) == main(["own-data"]) == main(["multi30k-en-de", "seeds=[1,2]"]) == 0
    params, original = load_params(), params_of("multi30k-en-de")
    assert list(params.seeds) == [1, 2]
    assert params.model_copy(update={"seeds": original.seeds}) == original
    for text in ("# Preset gone, written by: make preset NAME=gone. Edit it freely.\n", "train: [\n"):
        PARAMS.write_text(text)
        assert main([DEFAULT]) == 1
    assert main([DEFAULT, "--force"]) == 0
    assert PARAMS.read_text(encoding="utf-8") == rendered(DEFAULT)


@pytest.mark.parametrize("lost", ["repository", "git"])
def test_without_git_edits_are_kept(repository: Path, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    """The file could be the only copy."""
    text = edit()
    if lost == "git":
        monkeypatch.setenv("PATH", str(repository))
    else:
        shutil.rmtree(".git")
    assert main(["multi30k-en-de"]) == 1
    assert PARAMS.read_text(encoding="utf-8") == text


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is on one line, with its title."""
    assert main([]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert [line.split()[0] for line in lines[: len(list_presets())]] == list_presets()
    assert "wmt14-en-de-paper    WMT'14 English to German as in the paper (§5.1, Table 1)." in lines
