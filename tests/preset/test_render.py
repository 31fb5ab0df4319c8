"""A rendered preset is the base with some lines changed; keys and comments of both survive."""

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.config.load import parse_params
from pipelines.preset.changes import committed
from pipelines.preset.document import read_document
from pipelines.preset.render import EXPERIMENTS, preset_names, preset_title, render
from tests.presets import content_of, params_of, rendered

ROOT = EXPERIMENTS.parent


def keys_of(text: str) -> dict[str, Any]:
    """Return the values of a file by dotted name."""
    content = YAML(typ="safe", pure=True).load(text) or {}
    return {f"{section}.{key}": value for section, keys in content.items() for key, value in keys.items()}


def own_text(name: str) -> str:
    """Return the text of a preset's file in the repository."""
    return (EXPERIMENTS / "presets" / f"{name}.yaml").read_text(encoding="utf-8")


def comments(lines: list[str]) -> list[str]:
    return [match[0] for line in lines if (match := re.search(r"(^|\s)# .*", line))]


def test_params_yaml_is_the_rendered_default() -> None:
    """A new key goes into base.yaml only; `make preset NAME=tatoeba-en-de` then writes params.yaml.

    The last commit's file will also do, because anybody who experiments has edited theirs.
    """
    path = ROOT / "params.yaml"
    assert render("tatoeba-en-de") in (path.read_text(encoding="utf-8"), committed(path))


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_is_the_base_but_for_its_own_keys(name: str) -> None:
    """The rendered file has every key of the base, in the same order, with the preset's values."""
    base = keys_of((EXPERIMENTS / "base.yaml").read_text(encoding="utf-8"))
    whole = keys_of(rendered(name))
    assert list(whole) == list(base)
    assert whole == base | keys_of(own_text(name))
    assert parse_params(rendered(name), name) == params_of(name)


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_repeats_no_value_of_the_base(name: str) -> None:
    """A repeated value would hide what differs, and would not follow a new default."""
    base = keys_of((EXPERIMENTS / "base.yaml").read_text(encoding="utf-8"))
    assert [key for key, value in keys_of(own_text(name)).items() if value == base[key]] == []


@pytest.mark.parametrize("name", preset_names())
def test_every_comment_survives(name: str) -> None:
    """The file has all of the preset's, header first, and the base's for the keys that the preset leaves."""
    preset = read_document(EXPERIMENTS / "presets" / f"{name}.yaml", name)
    base = read_document(EXPERIMENTS / "base.yaml", "base")
    lines = rendered(name).split("\n")
    assert lines[0].startswith(f"# Preset {name}, written by: make preset NAME={name}.")
    assert lines[2 : 2 + len(preset.header)] == preset.header
    kept = [line for key, block in base.blocks.items() if key not in preset.blocks for line in block.lines]
    assert set(kept) <= set(lines)
    wanted = comments(own_text(name).split("\n")) + comments(kept)
    found = comments(lines[2:])
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("name", [*preset_names(), "base"])
def test_every_key_has_a_comment(name: str) -> None:
    """A comment in the base explains the key; in a preset, it also says where the value comes from."""
    path = EXPERIMENTS / "base.yaml" if name == "base" else EXPERIMENTS / "presets" / f"{name}.yaml"
    blocks = read_document(path, name).blocks
    assert [key for key, block in blocks.items() if "." in key and not comments(block.lines)] == []


def test_a_list_is_replaced_whole(experiments: Path) -> None:
    """A list over several lines is replaced with the comments inside it; the lines around it stay."""
    (experiments / "presets" / "mine.yaml").write_text(
        "# Mine.\n\ndownload:\n  # two files\n  test:\n    - kind: files # ours\n      source: a\n"
        "      target: b\n      tsv: null\n      columns: null\n"
        "model:\n  decoder_kernels: [5,\n    5, # wide\n    5]\n"
    )
    text = render("mine", experiments)
    assert "    - kind: files # ours\n      source: a\n" in text
    assert "\n  # two files\n  test:\n    - kind: files" in text
    assert "  decoder_kernels: [5,\n    5, # wide\n    5]\n  attention: [true, true, true] #" in text
    whole = keys_of(text)
    assert whole["download.test"] == [
        {"kind": "files", "source": "a", "target": "b", "tsv": None, "columns": None}
    ]
    assert whole["download.train"] == content_of("own-data")["download"]["train"]
    assert whole["model.decoder_kernels"] == [5, 5, 5]
    assert "\n\nfilter:\n" in text


def test_comments_above_and_below_keys_stay_with_the_next_key(experiments: Path) -> None:
    """The base has comments on lines of their own; a preset replaces only those of its keys."""
    base = (experiments / "base.yaml").read_text(encoding="utf-8")
    base = base.replace("  momentum:", "  # about momentum\n  momentum:").replace(
        "\ntune:", "\n# about tune\ntune:"
    )
    (experiments / "base.yaml").write_text(base, encoding="utf-8")
    (experiments / "presets" / "mine.yaml").write_text("train:\n  learning_rate: 0.5 # mine\n")
    text = render("mine", experiments)
    assert "  learning_rate: 0.5 # mine\n  # about momentum\n  momentum: 0.99" in text
    assert "\n\n# about tune\ntune:\n" in text
    (experiments / "presets" / "mine.yaml").write_text("train:\n  # my own\n  momentum: 0.9 # mine\n")
    text = render("mine", experiments)
    assert "(§4.2)\n  # my own\n  momentum: 0.9 # mine\n  clip_norm" in text
    assert "about momentum" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train:\n  dropuot: 0.3\n", r"train\.dropuot: unknown key; did you mean train\.dropout\?"),
        ("trian:\n  dropout: 0.3\n", r"trian: unknown key; did you mean train\?"),
        ("train:\n  dropout: 3.5\n", r"train\.dropout: found 3\.5, wanted less than 1"),
        ("filter:\n  valid_every: null\n", r"filter\.valid_every and download\.valid: exactly one must be"),
        ("train: 3\n", r"train: found 3, wanted the keys of this section"),
        ("train:\n", r"train: found None, wanted the keys of this section"),
        ("- train\n", r"found \['train'\], wanted sections such as `train:`"),
        ("train: {dropout: 0.3}\n", r"train and train\.dropout share line 1, wanted one key per line"),
        ("train:\n  dropout: [0.3\n", r"is not valid YAML"),
        ("train:\n  dropout: &a [*a]\n", r"has more than 20,000 values, or more than 20 levels"),
        ("train:\n  dropout: 0.3\n  dropout: 0.4\n", r"is not valid YAML: .*found duplicate key"),
    ],
)
def test_a_faulty_preset_is_refused(experiments: Path, text: str, message: str) -> None:
    """The error names the file, the key and what was wanted."""
    (experiments / "presets" / "mine.yaml").write_text(text)
    with pytest.raises(ValueError, match=f"(?s){message}") as caught:
        render("mine", experiments)
    assert str(caught.value).startswith("experiments/presets/mine.yaml")


def test_a_base_without_a_key_is_refused(experiments: Path) -> None:
    """A key that the schema knows but base.yaml lacks would be missing from every params.yaml."""
    base = (experiments / "base.yaml").read_text(encoding="utf-8")
    (experiments / "base.yaml").write_text(re.sub(r"\n  momentum:.*", "", base), encoding="utf-8")
    (experiments / "presets" / "mine.yaml").write_text("# Mine.\n")
    with pytest.raises(
        ValueError, match=r"completed from experiments/base\.yaml, has 1 .*\n  train\.momentum: m"
    ):
        render("mine", experiments)


def test_an_unknown_preset_is_refused() -> None:
    """The error suggests similar names, or lists all."""
    with pytest.raises(ValueError, match=r"no preset 'multi30k'; did you mean .*multi30k-en-de"):
        render("multi30k")
    with pytest.raises(ValueError, match=r"no preset 'zzz'; wanted one of ablation-en-de, duc2004"):
        render("zzz")
    with pytest.raises(ValueError, match=r"no preset '\.\./base'"):
        render("../base")


def test_titles_fit_one_line() -> None:
    """Presets are listed on the terminal, each on one line."""
    assert all(preset_title(name).endswith(".") for name in preset_names())
