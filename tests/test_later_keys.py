"""A key that is added later: files that lack it stay as they are, and only another value is new."""

import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.format import (
    FORMAT,
    READABLE,
    NewerFormatError,
    check_format,
    format_of,
    newest,
    numbers_of,
)
from convs2s.config.load import MOVED, parse_params
from convs2s.config.params import Params
from convs2s.model.description import digest_of_content, read_description, seal
from convs2s.model.storage import load_model, save_model
from convs2s.package.folder import Settings, check_same, read_settings, write_package
from convs2s.package.translator import load
from convs2s.train.running.checkpoint import read_checkpoint
from convs2s.train.running.checkpoint_writer import CheckpointWriter
from convs2s.train.running.job import Job, training_fingerprint
from convs2s.train.running.work_folder import WorkFolder
from pipelines import check
from pipelines.later_keys import list_later
from pipelines.preset import apply_overrides
from pipelines.stages._models import check_start
from tests.decode.parrot import PACKAGED, TOKENIZE
from tests.docs import pages
from tests.golden import states
from tests.later_keys import DEFAULT, KEY, SECTIONS, SINCE, gained_keys
from tests.model.small import small_model, small_params
from tests.package.small_package import edit_settings, write_parts, write_small_package, write_start
from tests.presets import content_of, params_of, rendered
from tests.test_check import write as write_params
from tests.train.tiny import PATHS, default_params, tiny_training, write_tiny

PRESET = "tatoeba-en-de"
BEFORE = states.FOLDER / "before"
MAJOR, MINOR, _ = numbers_of(READABLE)
NEXT = f"{MAJOR}.{MINOR + 1}.0"
"""The first version that this code cannot read."""
RELEASED = {"translate.json: translate.split_sentences": "1.1.0"}
"""Keys that came with a version before this one."""
NEWER = rf"has format {SINCE}; this convs2s reads up to {READABLE}\. Install convs2s {SINCE} or later"


@pytest.fixture
def gained() -> Iterator[None]:
    """Let the sections model, tokenize, train and translate have one more key."""
    with gained_keys():
        yield


def params_with(**values: float) -> Params:
    """Return the default preset with other values of the new key, by section."""
    content = content_of(PRESET)
    for section, value in values.items():
        content[section] = content[section] | {KEY: value}
    return Params.model_validate(content)


def described(folder: Path) -> dict[str, Any]:
    """Return the content of a model.json."""
    content: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.usefixtures("gained")
def test_a_file_without_the_key_means_its_default() -> None:
    """An older clone and an older model folder can still be read. Any other missing key is an error."""
    params = parse_params(f"{rendered(PRESET)}\n# of an older clone\n", "params.yaml")
    settings = read_settings(BEFORE / "model")
    architecture = read_description(BEFORE / "model").architecture
    sections = [*(getattr(params, name) for name in SECTIONS), settings.tokenize, settings.translate]
    assert [getattr(section, KEY) for section in (*sections, architecture)] == [DEFAULT] * 7
    with pytest.raises(ValueError, match=r"train\.dropout: missing"):
        parse_params(rendered(PRESET).replace("  dropout: 0.0", "  # dropout: 0.0"), "params.yaml")


@pytest.mark.usefixtures("gained")
def test_older_folders_and_checkpoints_are_used_as_before() -> None:
    """They translate, and the training goes on: the key has its default in both fingerprints."""
    results = states.results_of(BEFORE)
    recorded = json.loads((BEFORE / "results.json").read_text(encoding="utf-8"))
    names = "translations", "resumed", "state"
    assert [results[name] for name in names] == [recorded[name] for name in names]


def test_only_another_value_of_the_key_is_written(tmp_path: Path) -> None:
    """The file then has the format of the key's version, and a version without the key asks for that one."""
    with gained_keys():
        for value, form in ((DEFAULT, FORMAT), (0.5, SINCE)):
            params = small_params(**{KEY: value})
            save_model(tmp_path / str(value), small_model(**{KEY: value}), params)
            description = described(tmp_path / str(value))
            assert (KEY in description["architecture"]) == (value != DEFAULT)
            assert description["format"] == form
            assert read_description(tmp_path / str(value)).architecture == params
    load_model(tmp_path / str(DEFAULT))
    with pytest.raises(NewerFormatError, match=NEWER):
        load_model(tmp_path / "0.5")


@pytest.mark.parametrize("name", ["tokenize", "translate"])
def test_the_settings_of_a_folder_count_as_well(name: str, tmp_path: Path) -> None:
    """The key may be in tokenizer.json or translate.json. With its default, a folder is as before."""
    before = write_small_package(tmp_path)
    with gained_keys():
        parts = write_parts(tmp_path)
        sections: dict[str, Any] = {
            "tokenize": type(TOKENIZE).model_validate(TOKENIZE.model_dump()),
            "translate": type(PACKAGED).model_validate(PACKAGED.model_dump()),
        }
        settings = Settings(("en", "de"), **sections, replace=False)
        write_package(tmp_path / "same", *parts, settings, "# card\n")
        changed = type(sections[name]).model_validate({**sections[name].model_dump(), KEY: 0.5})
        settings = Settings(("en", "de"), **sections | {name: changed}, replace=False)
        write_package(tmp_path / "changed", *parts, settings, "# card\n")
        assert getattr(getattr(read_settings(tmp_path / "changed"), name), KEY) == 0.5
    check_same(before, tmp_path / "same")  # members of an ensemble
    load(tmp_path / "same", "cpu")
    assert described(tmp_path / "same")["format"] == FORMAT
    with pytest.raises(NewerFormatError, match=NEWER):
        load(tmp_path / "changed", "cpu")


def test_a_newer_format_is_named_whatever_else_the_folder_has(tmp_path: Path) -> None:
    """A newer version may have changed anything else. A format that is no version is another fault."""
    package = write_small_package(tmp_path)
    path = package / "model.json"
    content = described(package) | {"format": NEXT, "unknown": 1}
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(NewerFormatError, match=rf"model\.json has format {NEXT}; .* Install convs2s {NEXT}"):
        load(package, "cpu")
    content["format"] = "new"
    path.write_text(json.dumps(content | {"sha256": digest_of_content(content)}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"format: expected a version, such as 1\.0\.0, found 'new'"):
        load(package, "cpu")


def test_versions_compare_by_their_numbers() -> None:
    """As texts, 1.10.0 would come before 1.9.0."""
    assert newest(["1.9.0", "1.10.0", "0.99.0"]) == "1.10.0"
    check_format(FORMAT, Path("model.json"))
    check_format("0.1.0", Path("model.json"))


def test_the_format_of_a_folder_never_becomes_older(tmp_path: Path) -> None:
    """The model may need a newer version than the settings; a folder of before gets today's format."""
    content = described(BEFORE / "model")
    for given, form in (({}, FORMAT), ({"format": SINCE}, SINCE)):
        (tmp_path / "model.json").write_text(json.dumps(given | content), encoding="utf-8")
        seal(tmp_path)
        assert described(tmp_path)["format"] == form


def fingerprint(params: Params) -> dict[str, str]:
    return training_fingerprint(Job(params.model, params.train, params.run, 3, *PATHS, {}, ""), 1)


def test_only_another_value_of_the_key_begins_a_new_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default does what the training did before, so its checkpoints can still be used."""
    monkeypatch.chdir(tmp_path)
    write_tiny(tmp_path)
    before = fingerprint(default_params())
    with gained_keys():
        assert fingerprint(params_with()) == before
        changed = {section: fingerprint(params_with(**{section: 0.5})) for section in ("train", "model")}
    assert {name for name, _ in changed["train"].items() ^ before.items()} == {KEY}
    assert {name for name, _ in changed["model"].items() ^ before.items()} == {"model"}


def test_a_new_training_names_the_key_that_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its user would not know why the checkpoints are not used."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(BEFORE / "checkpoints", "work")
    [checkpoint] = Path("work").glob("*/*")
    prints = read_checkpoint(checkpoint).prints
    said = WorkFolder(Path("work"), prints | {KEY: "0.5"}).why_from_scratch()
    assert f"these have changed since the checkpoint {checkpoint} was written: {KEY}. " in said


def test_a_checkpoint_of_a_newer_version_stops_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training from scratch would cost what the checkpoint holds."""
    training = tiny_training(tmp_path, layers=1)
    folder = WorkFolder(tmp_path / "work", {"seed": "1"})
    monkeypatch.setattr("convs2s.train.running.checkpoint.FORMAT", NEXT)
    with CheckpointWriter(folder, None, in_thread=False) as writer:
        writer.save(training)
    [path] = folder.own.iterdir()
    with pytest.raises(
        NewerFormatError, match=rf"{path} has format {NEXT}; .* Or delete {folder.own} to train"
    ):
        folder.resume(training)
    other = WorkFolder(tmp_path / "work", {"seed": "2"})
    assert f"Training starts from scratch: {path} has format {NEXT}" in other.resume(training)
    monkeypatch.undo()
    with CheckpointWriter(folder, None, in_thread=False) as writer:
        writer.save(training)
    assert "Training continues from" in folder.resume(training)


def test_a_start_from_an_older_model_is_compared_by_its_default(tmp_path: Path) -> None:
    """The older model works as with the default; with any other value, its weights would not fit."""
    start = write_start(tmp_path, params_of(PRESET))
    assert KEY not in described(start)["architecture"]
    with gained_keys():
        check_start(start, params_with())
        with pytest.raises(ValueError, match=rf"model\.{KEY}: expected 0\.0, found 0\.5"):
            check_start(start, params_with(model=0.5))


@pytest.mark.usefixtures("gained")
@pytest.mark.parametrize(
    ("recorded", "now", "kept"),
    [
        ({}, {}, []),
        ({}, {KEY: DEFAULT}, [f"train.{KEY}"]),
        ({KEY: DEFAULT}, {}, [f"train.{KEY}"]),
        ({}, {KEY: 0.5}, []),
        ({KEY: 0.5}, {}, []),
        ({}, {KEY: DEFAULT, "dropout": 0.5}, []),
    ],
)
def test_results_are_kept_only_if_all_that_differs_is_a_later_key_with_its_default(
    recorded: dict[str, float], now: dict[str, float], kept: list[str]
) -> None:
    """Such results are those of the default, whichever of dvc.lock and params.yaml has the key.

    With another value, or another change beside it, stages must run.
    """
    train = content_of(PRESET)["train"]
    assert list_later({"train": train | recorded}, {"train": train | now}) == kept


@pytest.mark.usefixtures("gained")
def test_results_with_a_section_that_is_gone_are_not_kept() -> None:
    """They depended on something that is not there any more, so the stage must run."""
    train = content_of(PRESET)["train"]
    assert list_later({"train": train, "gone": 1}, {"train": train | {KEY: DEFAULT}}) == []


@pytest.mark.usefixtures("gained")
def test_the_list_of_keys_has_the_key_that_an_older_params_yaml_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users learn from `pipelines.check --list` that the key exists, and what leaving it out means."""
    write_params(tmp_path, {})
    monkeypatch.chdir(tmp_path)
    check.main(["--list"])
    assert f"train.{KEY}: {DEFAULT}\n    A key that was added.\n" in capsys.readouterr().out


@pytest.mark.usefixtures("gained")
def test_an_older_params_yaml_takes_the_key_into_its_section() -> None:
    """`SET="train.added_key=0.1"` works although the file lacks the key; no other line changes."""
    text, params = apply_overrides(rendered(PRESET), {f"train.{KEY}": 0.1})
    assert getattr(params.train, KEY) == 0.1
    assert parse_params(text, "written") == params
    assert text.replace(f"  {KEY}: 0.1\n", "") == rendered(PRESET)
    assert f"  {KEY}: 0.1\n  selection: null" in text.partition("\ntrain:\n")[2].partition("\n\n")[0]


def list_later_keys(file: str) -> dict[str, str]:
    """Return the keys of a kind of file that came later, each with the version that it names."""
    fields = states.list_keys(states.SCHEMAS[file])
    extras = {key: getattr(field, "json_schema_extra", None) for key, field in fields.items()}
    return {key: extra["since"] for key, extra in extras.items() if extra}


def test_a_new_key_comes_with_this_version() -> None:
    """A folder would otherwise ask for an older version, which refuses the key."""
    version = tomllib.loads(pages.read("pyproject.toml"))["project"]["version"]
    keys = {
        f"{file}: {key}": since for file in states.SCHEMAS for key, since in list_later_keys(file).items()
    }
    assert keys == dict.fromkeys(keys, version) | RELEASED


@pytest.mark.usefixtures("gained")
def test_a_misspelled_key_is_no_later_key() -> None:
    """A file may lack a later key, but not have one that no version knows."""
    with pytest.raises(ValueError, match=rf"train\.aded_key: unknown key.* did you mean {KEY}\?"):
        apply_overrides(rendered(PRESET), {"train.aded_key": 0.1})


@pytest.mark.usefixtures("gained")
def test_a_later_key_of_a_section_within_a_section_counts() -> None:
    """`selection`, for example, is a section itself. A later key may also hold a section."""
    assert format_of(params_with()) == FORMAT
    assert format_of(params_with(translate=0.5)) == SINCE


PLACES = {"search": "host", "split_sentences": False}


def content_of_version_1_1(**values: object) -> Any:
    """Return the default preset with the keys that have moved where version 1.1 had them."""
    content = content_of(PRESET)
    for key, section in MOVED.items():
        content["translate"][key] = values.get(key, content[section][key])
        del content[section][key]
    return content


def test_keys_that_have_moved_are_read_where_version_1_1_had_them() -> None:
    """A params.yaml keeps its meaning. A key that is in both places could mean two things."""
    content = content_of_version_1_1(**PLACES)
    params = parse_params(json.dumps(content), "params.yaml")
    assert (params.run.search, params.package.split_sentences) == ("host", False)
    content["run"]["search"] = "auto"
    with pytest.raises(ValueError, match=r"translate\.search: unknown key"):
        parse_params(json.dumps(content), "params.yaml")


def test_a_folder_of_version_1_1_loads_with_keys_that_have_moved(tmp_path: Path) -> None:
    """Its text is split as before; where it is searched is a matter of the machine that has it now."""
    model = edit_settings(write_small_package(tmp_path), "translate.json", "translate", **PLACES)
    translator = load(model, "cpu")
    assert (translator.splits_sentences, translator.words.place) == (False, "auto")
    assert load(model, "cpu", split_sentences=True).splits_sentences


@pytest.mark.parametrize(("search", "kept"), [("auto", [f"translate.{key}" for key in MOVED]), ("host", [])])
def test_results_are_kept_if_only_a_key_at_its_default_has_moved(search: str, kept: list[str]) -> None:
    """An upgrade from 1.1 asks for `dvc commit`, and does not run the stages that translate again."""
    recorded = content_of_version_1_1(search=search)["translate"]
    assert list_later({"translate": recorded}, content_of(PRESET)) == kept
