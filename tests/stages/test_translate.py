"""Stages translate and ensemble@all: raw test sentences -> hypotheses.jsonl and attention.npz."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from convs2s.base.files import write_json, write_lines
from convs2s.config.translate import TranslateSection
from convs2s.decode.translations import read_attention, read_hypotheses
from convs2s.text.vocabulary.codec import Codec
from pipelines.stages import translate
from tests.decode.parrot import TOKENIZE, TRANSLATE
from tests.package.small_package import write_model, write_parts
from tests.presets import params_of

RUN = params_of("tatoeba-en-de").run
LINES = ["ein Haus.", "", "Das ist noch eins, und der Hund.", "ein\u2028Hund", "Maus"]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Models of two seeds in trained/, a vocabulary and a test set."""
    write_parts(tmp_path)
    for seed in (1, 2):
        write_seed(tmp_path, seed)
    write_lines(tmp_path / "test" / "source.txt", LINES)
    return tmp_path


def write_seed(folders: Path, seed: int) -> None:
    """Write a model to trained/SEED/model."""
    size = size_of(folders)
    write_model(folders / "trained" / str(seed) / "model", (size, size), phase=seed - 1.0)


def size_of(folders: Path) -> int:
    """Return the number of entries of either vocabulary."""
    return len(Codec.load(folders / "vocabulary", "source").vocabulary)


def write_alpha(folder: Path, alpha: object) -> None:
    """Write what the stage tune writes for a member."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "alpha.json", {"alpha": alpha})


def run(
    folders: Path, member: str = "1", seeds: Sequence[int] = (1, 2), **changes: object
) -> dict[str, bytes]:
    """Translate with a seed's model or the ensemble; return the files written."""
    inputs = [folders / name for name in ("trained", "vocabulary", "candidates", "truecasers", "test")]
    params = TranslateSection.model_validate({**TRANSLATE.model_dump(), **changes})
    if params.alpha != "tuned":
        write_alpha(folders / "tuned" / member, params.alpha)
    paths = (*inputs, folders / "tuned", folders / "out")
    translate.run(params, TOKENIZE, ("en", "de"), list(seeds), RUN, member, *paths)
    return {path.name: path.read_bytes() for path in (folders / "out" / member).iterdir()}


def test_there_is_a_sentence_for_each_line(folders: Path) -> None:
    """Sentences are in order and tokenized, with attention of matching shape."""
    run(folders, n_best=2)
    sentences = list(read_hypotheses(folders / "out" / "1" / "hypotheses.jsonl"))
    attention = read_attention(folders / "out" / "1" / "attention.npz")
    assert [len(words) for words, _ in sentences] == [3, 0, 9, 2, 1]
    assert sentences[0][0] == ["ein", "Haus", "."]
    assert [len(hypotheses) for _, hypotheses in sentences] == [2, 1, 2, 2, 2]
    for (_, hypotheses), heat in zip(sentences, attention, strict=True):
        assert heat.target == hypotheses[0].tokens
        assert heat.weights.shape == (len(heat.target), len(heat.source))
        assert heat.weights.sum() == pytest.approx(len(heat.target), abs=0.1)  # rows sum to 1


def test_an_ensemble_is_of_the_seeds_named_and_no_other(folders: Path) -> None:
    """Table 2 has ensembles of 8 and of 10: 10 trained models can serve both."""
    two = run(folders, "ensemble")
    write_seed(folders, 3)
    assert run(folders, "ensemble") == two
    assert run(folders, "ensemble", (1, 2, 3)) != two


@pytest.mark.parametrize("member", ["1", "ensemble"])
def test_a_tuned_alpha_is_that_of_the_stage_tune(folders: Path, member: str) -> None:
    """The translations equal those with this alpha as a number."""
    same, tuned, other = (run(folders, member, n_best=2, alpha=alpha) for alpha in (0.25, "tuned", 1.0))
    assert tuned == same
    assert tuned["hypotheses.jsonl"] != other["hypotheses.jsonl"]  # which has scores


def translate_unknown(folders: Path) -> Path:
    """Translate a line without unknown characters, and one with them; return the stage's output."""
    write_lines(folders / "test" / "source.txt", ["ein Haus.", "ein 🙂 Haus Łódź."])
    run(folders)
    return folders / "out" / "1"


def test_characters_that_the_model_never_saw_are_words_of_the_source(folders: Path) -> None:
    """They are put back into the translation and counted; evaluation reads both from the file."""
    [(_, [known]), (words, [best])] = read_hypotheses(translate_unknown(folders) / "hypotheses.jsonl")
    assert words == ["ein", "🙂", "Haus", "Łódź", "."]
    assert sorted({*best.words} - {*known.words}) == ["Łódź", "🙂"]
    assert (known.unknown_characters, best.unknown_characters) == (0, 4)


def test_characters_that_the_model_never_saw_change_nothing_else(folders: Path) -> None:
    """Tokens, score and attention are those of the line without them."""
    out = translate_unknown(folders)
    [(_, [known]), (_, [best])] = read_hypotheses(out / "hypotheses.jsonl")
    assert (best.tokens, best.score) == (known.tokens, known.score)
    assert [word for word in best.words if word not in ("🙂", "Łódź")] == known.words
    first, second = read_attention(out / "attention.npz")
    assert (first.source, first.target) == (second.source, second.target)


def test_int8_is_computed_on_the_cpu_even_if_there_is_a_gpu(
    folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stage has no option for a device; its result is the same with and without a GPU, as the log says."""
    expected = run(folders, precision="int8")
    assert "products in int8, as set." in capsys.readouterr().err
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert run(folders, precision="int8") == expected
    said = "products in int8, as set, and thus on the CPU: for the GPU, choose auto or float32."
    assert said in capsys.readouterr().err
