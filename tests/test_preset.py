"""Presets: rendered to a whole params.yaml, with other values, and never over somebody's edits."""

import io
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.config.load import flatten_values, load_params, parse_yaml
from pipelines import preset
from pipelines.preset import EXPERIMENTS, apply_overrides, find_presets, main, parse_override, render_preset
from tests.flows import toy
from tests.presets import params_of, rendered

pytestmark = pytest.mark.usefixtures("yaml_once")  # takes a quarter less time
ROOT = EXPERIMENTS.parent
PARAMS = Path("params.yaml")
DEFAULT = re.match(r"# Preset ([\w-]+)", (ROOT / "params.yaml").read_text(encoding="utf-8"))[1]  # type: ignore[index]
COMMENT = re.compile(r"(?:^|\s)# (.*)")


@cache
def keys_of(text: str) -> dict[str, Any]:
    """Return the values of a file by dotted name."""
    return flatten_values(YAML(typ="safe", pure=True).load(text) or {})


def text_of(name: str) -> str:
    """Return the text of the base, or of a preset's own file."""
    file = "base.yaml" if name == "base" else f"presets/{name}.yaml"
    return (EXPERIMENTS / file).read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=find_presets())
def preset_name(request: pytest.FixtureRequest) -> str:
    """Each preset in turn: all tests of one follow each other, and it is rendered once."""
    return str(request.param)


def test_every_key_of_a_preset_has_a_comment(preset_name: str) -> None:
    """It has the meaning of the key, or the source of its value."""
    lines = rendered(preset_name).split("\n")
    assert [line for line in lines if re.match(r"  \w+:", line) and "# " not in line] == []


def test_a_preset_file_has_only_what_differs_from_the_base(preset_name: str) -> None:
    """A value that repeats that of base.yaml would not follow a new default."""
    base = keys_of(text_of("base"))
    own = keys_of(text_of(preset_name))
    assert [key for key, value in own.items() if value == base[key]] == []


def test_a_preset_is_the_base_but_for_its_own_keys(preset_name: str) -> None:
    """Keys and their order are those of base.yaml."""
    base = keys_of(text_of("base"))
    own = keys_of(text_of(preset_name))
    whole = keys_of(rendered(preset_name))
    assert list(whole) == list(base)
    assert whole == base | own


def test_a_preset_keeps_its_header_and_comments(preset_name: str) -> None:
    """They say where its values come from; whoever edits params.yaml has no other place to look."""
    own = text_of(preset_name)
    whole = rendered(preset_name)
    header = own[: re.search(r"^\w", own, re.MULTILINE).start()].strip()  # type: ignore[union-attr]
    assert whole.startswith(f"# Preset {preset_name}. Edit it freely.\n#\n{header}\n\n")
    assert set(COMMENT.findall(own)) <= set(COMMENT.findall(whole))


def test_a_model_has_the_name_of_its_preset(preset_name: str) -> None:
    """A recorded run is traced back to its preset by the name on the model card."""
    assert params_of(preset_name).package.name == preset_name


def test_params_yaml_is_a_rendered_preset() -> None:
    """A new key goes into base.yaml only; `make preset` then writes params.yaml.

    Whoever experiments has other values there, and commits them.
    """
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    values, of_preset = (
        flatten_values(parse_yaml(file, "params.yaml")) for file in (text, rendered(DEFAULT))
    )
    assert values.keys() == of_preset.keys()
    assert text == rendered(DEFAULT) or values != of_preset


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mine", "train:\n  dropuot: 0.3\n", r"train\.dropuot: unknown key.*did you mean dropout\?"),
        ("mine", "train:\n  dropout: 3.5\n", r"train\.dropout: .*3\.5"),
        ("mine", "train:\n  dropout: [0.3\n", r"is not valid YAML"),
        ("min", "", r"no preset 'min'; did you mean mine\?"),
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
        render_preset(name)


def test_without_overrides_nothing_changes() -> None:
    """A file that was written again could have other spaces or line breaks."""
    before = rendered("wmt14-en-fr-paper")
    assert apply_overrides(before, {})[0] == before


def test_only_the_lines_of_overrides_change() -> None:
    """Comments, nulls, quotes, long lines and indentation are kept; a list stays on its line."""
    before = rendered("wmt14-en-fr-paper")
    after, params = apply_overrides(before, {"seeds": [4, 5], "download.test.sources.0.source": "x"})
    changed = [pair for pair in zip(before.split("\n"), after.split("\n"), strict=True) if len({*pair}) > 1]
    seeds, source = [[line.split("#")[0].strip() for line in pair] for pair in changed]
    assert seeds == ["seeds: [1, 2, 3]", "seeds: [4, 5]"]
    assert source[1] == "source: x"
    assert list(params.seeds) == [4, 5]


def test_a_list_over_several_lines_is_overridden() -> None:
    """Both ways of writing a list are YAML, and people use both."""
    text = rendered("wmt14-en-fr-paper")
    over_lines = text.replace("[1, 2, 3] #", "#").replace("\n\ndownload", "\n\n- 1\n- 2\ndownload", 1)
    assert list(apply_overrides(over_lines, {"seeds": [4, 5]})[1].seeds) == [4, 5]


def test_overrides_leave_dvc_its_own_way_of_writing_null() -> None:
    """DVC writes dvc.lock with the same classes of ruamel; another null there would be an edit."""
    apply_overrides(rendered(DEFAULT), {"seeds": [4, 5]})
    YAML().dump({"a": None}, stream := io.StringIO())
    assert stream.getvalue() == "a:\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("train.droput", r"(?s)train\.droput: unknown key.*did you mean dropout"),
        ("trian.dropout", r"has no trian\.dropout; did you mean train\.dropout\?"),
        ("download.train.7.kind", r"has no download\.train\.7\.kind; did you mean download\.train\?"),
        ("seeds.²", r"has no seeds\.²; did you mean seeds\?"),
        ("package.name.0", r"has no package\.name\.0; did you mean package\.name\?"),
        ("train.dropout", r"(?s)params.yaml is invalid.*train\.dropout: expected less than 1"),
    ],
)
def test_wrong_overrides_are_refused(name: str, message: str) -> None:
    """They are typed by hand into a form or a command, so mistakes are likely."""
    with pytest.raises(ValueError, match=message):
        apply_overrides(rendered(DEFAULT), {name: 3})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("seeds=[1,2]", [1, 2]),
        ("train.clip_norm=1e-1", 0.1),
        ("package.name=a b", "a b"),
        ("package.name=", None),
        ("augment.tag='1'", "1"),
    ],
)
def test_an_override_is_a_name_and_a_value(text: str, value: object) -> None:
    """The value is written as in params.yaml."""
    assert parse_override(text) == (text.partition("=")[0], value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("dropout", "expected NAME=VALUE, such as"), ("seeds=[1,", "without spaces")],
)
def test_what_is_no_override_is_refused(text: str, message: str) -> None:
    """make would pass a list with spaces on in two words, of which the first is half a list."""
    with pytest.raises(ValueError, match=message):
        parse_override(text)


def write(*arguments: str) -> str:
    """Write params.yaml from a preset; return the refusal, if there is one."""
    try:
        main(arguments)
    except SystemExit as refusal:
        return str(refusal)
    return ""


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a git repository without any file."""
    toy.run(tmp_path, "git", "init", "--quiet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_edited() -> str:
    """Write params.yaml from a preset, with an edited comment; return it."""
    text = rendered("multi30k-en-de").replace("# probability of dropping", "# 0.3 was worse")
    PARAMS.write_text(text, encoding="utf-8")
    return text


def test_a_preset_makes_the_folder_that_it_names(clone: Path) -> None:
    """Git does not keep it; without it, the presets that fetch a corpus would stop, too.

    A page in it says what belongs there. To a folder that exists, or that DVC has, nothing is added.
    """
    folder = clone / "data" / "own"
    assert write("multi30k-en-de") == ""
    assert "docs/own-data.md" in (folder / "README.md").read_text(encoding="utf-8")
    (folder / "README.md").unlink()
    assert write("own-data") == "" and not any(folder.iterdir())
    folder.rmdir()
    folder.with_name("own.dvc").touch()
    assert write("multi30k-en-de") == "" and not folder.exists()


@pytest.mark.usefixtures("clone")
def test_a_preset_that_nobody_edited_is_overwritten() -> None:
    """It can be written again, so nothing is lost."""
    assert [write(name) for name in (DEFAULT, "own-data", "multi30k-en-de")] == ["", "", ""]
    assert PARAMS.read_text(encoding="utf-8") == rendered("multi30k-en-de")


@pytest.mark.usefixtures("clone")
def test_edits_that_are_not_in_git_are_not_overwritten() -> None:
    """The file may be their only copy; even a comment is an edit."""
    edited = write_edited()
    assert write("own-data").startswith(
        "params.yaml has edits that are not in git, so it was not overwritten"
    )
    assert PARAMS.read_text(encoding="utf-8") == edited


def test_edits_that_are_in_git_are_overwritten(clone: Path) -> None:
    """Git has a copy of them."""
    write_edited()
    toy.commit(clone)
    assert write("own-data") == ""


@pytest.mark.usefixtures("clone")
def test_an_override_is_an_edit() -> None:
    """Its value is stored nowhere else."""
    assert write("multi30k-en-de", "seeds=[4]") == ""
    assert "FORCE=1" in write("own-data")


@pytest.mark.usefixtures("clone")
def test_force_overwrites_edits() -> None:
    """The options may come in any order, since make puts them together."""
    write_edited()
    assert write("multi30k-en-de", "--force", "train.dropout=0.35") == ""
    original = params_of("multi30k-en-de")
    train = original.train.model_copy(update={"dropout": 0.35})
    assert load_params() == original.model_copy(update={"train": train})


@pytest.mark.usefixtures("clone")
def test_a_file_that_names_no_preset_is_not_overwritten() -> None:
    """Its preset may be gone, and its YAML broken: it is still somebody's file."""
    PARAMS.write_text("# Preset gone. Edit it freely.\ntrain: [\n")
    assert "FORCE=1" in write(DEFAULT)


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is on one line, with its title."""
    main([])
    lines = capsys.readouterr().out.split("\n")
    assert [line.split()[0] for line in lines[: len(find_presets())]] == list(find_presets())
    assert "wmt14-en-de-paper    WMT'14 English to German as in the paper (§5.1, Table 1)." in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", r"presets/odd\.yaml: expected sections of params\.yaml, found \['a'\]"),
        ("text\n", r"presets/odd\.yaml: expected sections of params\.yaml, found 'text'"),
        ("train: text\n", r"odd\.yaml, .* is invalid:\n  train: expected a dictionary .*, found 'text'"),
        ("train: [1]\n", r"odd\.yaml, .* is invalid:\n  train: expected a dictionary .*, found \[1\]"),
        ("seeds: {a: 1}\n", r"odd\.yaml, .* is invalid:\n  seeds: expected a list, found \{'a': 1\}"),
        ("seeds: [1]\nseeds: [2]\n", r"odd\.yaml is not valid YAML: .*duplicate key"),
        *(
            (f"tune:\n  alphas: {'[' * deep}{']' * deep}\n", r"odd\.yaml.*(too deeply|recursion|a number)")
            for deep in (9, 200, 230, 260, 290, 9999)
        ),
    ],
)
def test_an_odd_preset_is_refused(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People write presets by hand, and get them from others, so the message names the file."""
    shutil.copytree(EXPERIMENTS, tmp_path / "experiments")
    monkeypatch.setattr(preset, "EXPERIMENTS", tmp_path / "experiments")
    (tmp_path / "experiments" / "presets" / "odd.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"(?s){message}"):
        render_preset("odd")
