"""Stage augment: which text is translated, in which direction, and what is wrong with a text."""

import contextlib
import gzip
import shutil
from pathlib import Path

import pytest

import convs2s
from convs2s.base.files import read_folder, read_json, write_folder, write_json
from convs2s.base.parallel import cores
from convs2s.config.params import Params
from convs2s.config.section import NOTHING
from convs2s.model.description import seal
from convs2s.package import translator
from pipelines.stages import augment
from pipelines.stages._models import check_models
from tests.package.small_package import write_small_package
from tests.presets import change_preset, params_of

RUN = params_of("tatoeba-en-de").run
LINES = [
    "ein Haus .",
    "",
    "noch eins und noch eins .",
    " \t",
    "\ufeffder Hund , die Maus , ein Hund .",
    "Maus",
]
SENTENCES = ["ein Haus .", "noch eins und noch eins .", "der Hund , die Maus , ein Hund .", "Maus"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model folder that is from en to de."""
    return write_small_package(tmp_path_factory.mktemp("model"), phase=1.0)


def run(folder: Path, models: Path, text: Path = Path(NOTHING)) -> list[tuple[str, str]]:
    """Run the stage with LINES as the training source; return what it writes."""
    write_folder(folder / "raw", [(line, "x") for line in LINES])
    augment.run(str(models), str(text), RUN, folder / "raw", folder / "out")
    return list(read_folder(folder / "out"))


def test_the_training_source_is_translated(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blank lines are left out. A chunk of any size gives what the translator gives for all at once."""
    expected = convs2s.load(model, "cpu").translate(SENTENCES)
    assert len(set(expected)) == len(SENTENCES)  # the small model's differ in length only
    for batches in (64, 1):
        monkeypatch.setattr("convs2s.decode.load.CHUNK_BATCHES", batches)
        assert run(tmp_path, model) == list(zip(SENTENCES, expected, strict=True))


def test_models_with_int8_use_all_cores_even_if_there_is_a_gpu(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They translate on the CPU; beside a GPU, one process would do, which here takes far longer.

    They translate all text, as in training.
    """
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    settings = read_json(folder / "translate.json")
    settings["translate"]["precision"] = "int8"
    write_json(folder / "translate.json", settings)
    seal(folder)
    counts = list[int]()
    load = translator.load

    def note(paths: list[Path], processes: int, **settings: object) -> translator.Translator:
        counts.append(processes)
        assert not settings["keep_literals"] and not settings["capitals"]
        return load(paths)

    monkeypatch.setattr(translator, "load", note)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert len(run(tmp_path, folder)) == len(SENTENCES)
    assert counts == [cores()]


def test_text_is_translated_back(tmp_path: Path, model: Path) -> None:
    """It is the target of the pairs; several files follow each other, and may be compressed."""
    (tmp_path / "text").mkdir()
    (tmp_path / "text/one.txt").write_text("\n".join(SENTENCES[:2]), encoding="utf-8")
    (tmp_path / "text/other.txt.gz").write_bytes(gzip.compress("\n".join(SENTENCES[2:]).encode()))
    sources = convs2s.load(model, "cpu").translate(SENTENCES)
    pairs = run(tmp_path, model, tmp_path / "text")
    assert pairs == list(zip(sources, SENTENCES, strict=True))


def test_the_models_of_a_folder_translate_together(tmp_path: Path) -> None:
    """Several models in a folder are an ensemble. Its translations differ from those of the first model."""
    models = [
        write_small_package(tmp_path / "models" / name, phase) for name, phase in (("a", 1.0), ("b", 2.0))
    ]
    models = [model.rename(model.parent.with_name(f"model-{model.parent.name}")) for model in models]
    together = convs2s.load(models, "cpu").translate(SENTENCES)
    assert together != convs2s.load(models[0], "cpu").translate(SENTENCES)
    assert [target for _, target in run(tmp_path, tmp_path / "models")] == together


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" \n\n", r"expected sentences to translate, found none"),
        (b"gut\n" * 9 + "schön\n".encode("latin-1"), r"line 10: byte 3 is 0xf6, which is not UTF-8"),
    ],
)
def test_a_fault_of_the_text_is_found_before_anything_is_translated(
    tmp_path: Path, content: bytes, message: str
) -> None:
    """Found at the end of a long file, it would cost hours; here not even the model exists."""
    (tmp_path / "text.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        run(tmp_path, tmp_path / "nowhere", tmp_path / "text.txt")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("models", "text", "error", "message"),
    [
        ("package", NOTHING, None, ""),
        ("reverse", "text.txt", None, ""),
        ("package", "text.txt", ValueError, r"from de to en, .* found .*package, which is from en to de"),
        ("reverse", NOTHING, ValueError, r"from en to de, .* found .*reverse, which is from de to en"),
        ("nowhere", NOTHING, FileNotFoundError, r"augment\.models: expected a model folder, .*nowhere"),
        ("empty", NOTHING, FileNotFoundError, r"augment\.models: .* folder of some, found none in .*empty"),
        ("reverse", "none.txt", FileNotFoundError, r"augment\.text: expected a file .*none\.txt"),
    ],
)
def test_models_and_text_are_checked_before_anything_runs(
    tmp_path: Path, models: str, text: str, error: type[Exception] | None, message: str
) -> None:
    """A model of the wrong direction would translate German as English without an error."""
    write_small_package(tmp_path)
    reverse = write_small_package(tmp_path / "elsewhere").rename(tmp_path / "reverse")
    settings = (reverse / "tokenizer.json").read_text(encoding="utf-8")
    swapped = settings.replace('"en"', '"??"').replace('"de"', '"en"').replace('"??"', '"de"')
    (reverse / "tokenizer.json").write_text(swapped, encoding="utf-8")
    seal(reverse)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("ein Haus\n")
    values = {"augment.models": models, "augment.text": text}
    params = Params.model_validate(change_preset("tatoeba-en-de", values))
    with pytest.raises(error, match=message) if error else contextlib.nullcontext():
        check_models(params, tmp_path)
