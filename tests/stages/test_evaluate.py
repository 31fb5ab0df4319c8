"""Stage evaluate on hand-written translations: its outputs, and the inputs that it rejects."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convs2s.base.files import read_json, read_lines, write_lines
from convs2s.config.results import EvaluateParams, ReplaceParams
from convs2s.decode.translations import Attention, Hypothesis, write_attention, write_hypotheses
from convs2s.score.corpus_scores import bleu, chrf, tokenized_bleu
from pipelines.stages import evaluate
from tests.decode.parrot import TOKENIZE

SOURCES = ["the girl sleeps here .", "", "she sees a big house today .", "no ."]
REFERENCES = ["das Mädchen schläft hier.", "", "sie sieht heute ein großes Haus.", "nein."]
TOKENIZED = ["das Mädchen schläft hier .", "", "sie sieht heute ein großes Haus .", "nein ."]
PLAIN = ["das <unk> schläft hier.", "", "sie sieht ein großes Haus.", "nein."]
REPLACED = [line.replace("<unk>", "Mädchen") for line in PLAIN]
WORSE = ["das <unk> hier.", "", "sie sieht ein <unk>.", "nein."]


def write_translation(folder: Path, **texts: list[str]) -> None:
    """Write a member's texts as the stage replace does; here, only final periods are separate tokens."""
    for name, lines in texts.items():
        write_lines(folder / f"{name}.txt", lines)
        write_lines(folder / f"{name}.tok.txt", [line.replace(".", " .") for line in lines])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A test set, and translations of seeds 3 and 4 and their ensemble."""
    write_lines(tmp_path / "test" / "source.txt", SOURCES)
    write_lines(tmp_path / "test" / "target.txt", REFERENCES)
    provenance = {"lines": 4, "sources": [{"kind": "sacrebleu", "name": "wmt14/full"}]}
    write_lines(tmp_path / "test" / "provenance.json", [json.dumps(provenance)])
    write_translation(tmp_path / "replaced" / "3", plain=PLAIN, replaced=REPLACED)
    write_translation(tmp_path / "replaced" / "4", plain=WORSE, replaced=WORSE)
    write_translation(tmp_path / "replaced" / "ensemble", plain=PLAIN, replaced=REFERENCES)
    attention = []
    for source, target in zip(SOURCES, TOKENIZED, strict=True):
        words = source.split()
        tokens = target.split()
        weights = np.full((len(tokens), len(words)), 0.5, dtype=np.float16)
        attention.append(Attention(weights, words, tokens))
    (tmp_path / "translations" / "3").mkdir(parents=True)
    write_attention(tmp_path / "translations" / "3" / "attention.npz", attention)
    write_unknown(tmp_path, 0)
    return tmp_path


def write_unknown(data: Path, count: int) -> None:
    """Write hypotheses whose sources have so many characters that the model never saw."""
    best = Hypothesis(["</s>"], ["🙂"], -1.0, -1.0, [-1], [], unknown_characters=count)
    path = data / "translations" / "3" / "hypotheses.jsonl"
    write_hypotheses(path, [(source.split(), [best]) for source in SOURCES])


def run(data: Path, seeds: list[int], replacement: bool, **changes: object) -> Path:
    """Run the stage; return its output folder."""
    values = {"ensembles": [], "examples": 2, "heat_maps": 0, "rouge": None} | changes
    params = EvaluateParams.model_validate(values)
    evaluate.run(
        params, TOKENIZE, ("en", "de"), seeds, ReplaceParams(enabled=replacement),
        data / "replaced", data / "translations", data / "test", data / "evaluation",
    )  # fmt: skip
    return data / "evaluation"


def test_characters_that_the_model_never_saw_are_counted(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All seeds have the same vocabulary, so the first seed's count is given; without any there is no key."""
    known = read_json(run(data, [3], replacement=False) / "metrics.json")
    assert "unknown" not in capsys.readouterr().out
    write_unknown(data, 2)
    assert read_json(run(data, [3], replacement=False) / "metrics.json") == {**known, "unknown_characters": 8}
    assert "test set: 8 unknown characters: never seen" in capsys.readouterr().out


def test_rouge_takes_all_references(data: Path) -> None:
    """A translation that equals the second reference is perfect only by the mean over both."""
    write_lines(data / "test" / "target.2.txt", PLAIN)
    out = run(data, [3], replacement=False, rouge="gigaword")
    both = read_json(out / "metrics.json")["mean"]["rouge1"]
    assert read_json(out / "signatures.json")["rougeL"].startswith("nrefs:2|")
    assert pd.read_csv(out / "scores.csv")["rouge1"][0] == both
    (data / "test" / "target.2.txt").unlink()
    out = run(data, [3], replacement=False, rouge="gigaword")
    assert read_json(out / "metrics.json")["mean"]["rouge1"] < both < 100


def test_several_seeds_have_an_ensemble_only_if_asked_for(data: Path) -> None:
    """The folder has an ensemble's translations from an earlier run; they are no result of this one."""
    out = run(data, [3, 4], replacement=True)
    assert list(read_json(out / "metrics.json")) == ["seeds", "mean", "std", "without_replacement"]
    assert "ensemble" not in set(pd.read_csv(out / "scores.csv")["member"])


def test_one_seed_has_neither_deviation_nor_ensemble(data: Path) -> None:
    """One number has no deviation; the mean stays, so that other programs find it under one key."""
    assert list(read_json(run(data, [3], replacement=False) / "metrics.json")) == ["seeds", "mean"]


def test_without_an_ensemble_examples_are_of_the_first_seed(data: Path) -> None:
    """Its final text is shown, in which unknown words have been replaced."""
    out = run(data, [3, 4], replacement=True)
    _, *rows = read_lines(out / "examples.tsv")
    assert [row.split("\t")[1::2][:2] for row in rows] == [["3", REPLACED[0]], ["3", REPLACED[3]]]


def test_with_replacement_both_texts_are_scored_and_the_replaced_one_is_the_main(data: Path) -> None:
    """Readers see from the two scores what replacement gains."""
    metrics = read_json(run(data, [3, 4], replacement=True, ensembles=["all"]) / "metrics.json")
    assert list(metrics) == ["seeds", "mean", "std", "ensemble", "without_replacement"]
    assert metrics["ensemble"]["bleu"] == 100.0
    plain = metrics["without_replacement"]
    assert [plain["seeds"][seed]["unknown_words"] for seed in ("3", "4")] == [1.0, 2.0]
    assert plain["ensemble"]["bleu"] == plain["seeds"]["3"]["bleu"] == round(bleu(PLAIN, REFERENCES).value, 2)


def test_the_deviation_is_that_of_a_sample_of_seeds(data: Path) -> None:
    """Seed 3 leaves no unknown word after replacement, seed 4 two: with n - 1, the deviation is sqrt(2)."""
    metrics = read_json(run(data, [3, 4], replacement=True) / "metrics.json")
    assert metrics["std"]["unknown_words"] == round(2**0.5, 1)


def test_examples_are_of_the_ensemble_and_numbered_as_in_the_test_set(data: Path) -> None:
    """A reader can find them in the test files. An empty line, such as the second, would show nothing."""
    out = run(data, [3, 4], replacement=True, examples=9, ensembles=["all"])
    header, *lines = read_lines(out / "examples.tsv")
    assert header == "line\tmodel\tsource\thypothesis\treference\tbleu\tchrf"
    assert [line.split("\t")[:5] for line in lines] == [
        [str(i + 1), "ensemble", SOURCES[i], REFERENCES[i], REFERENCES[i]] for i in (0, 2, 3)
    ]


def test_text_is_scored_as_it_is_and_tokenized(data: Path) -> None:
    """Detokenized text is scored against the raw reference, tokenized text against the tokenized one."""
    out = run(data, [3], replacement=False)
    words = [line.replace(".", " .") for line in PLAIN]
    scores = {
        "bleu": round(bleu(PLAIN, REFERENCES).value, 2),
        "bleu_tokenized": round(tokenized_bleu(words, TOKENIZED).value, 2),
        "chrf": round(chrf(PLAIN, REFERENCES).value, 2),
        "length_ratio": round(13 / 14, 4),
        "unknown_words": 1.0,
    }
    assert read_json(out / "metrics.json") == {"seeds": {"3": scores}, "mean": scores}
    assert "tok:13a" in read_json(out / "signatures.json")["bleu"]


def test_sentences_are_scored_by_their_length(data: Path) -> None:
    """By hand: the sources have 5, 0, 7 and 2 words, so only the third is in the second class."""
    out = run(data, [3], replacement=False)
    table = pd.read_csv(out / "by_length.csv", index_col="source_words")
    assert table["sentences"].to_dict() == {"00-05": 3, "06-10": 1}
    assert table["chrf"]["06-10"] == pytest.approx(chrf([PLAIN[2]], [REFERENCES[2]]).value, abs=0.006)


def test_the_test_set_is_recorded_and_printed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scores mean little without its name, lines and hash: newstest2014 alone is three sets (T30)."""
    out = run(data, [3], replacement=False)
    text = "".join(f"{s}\t{r}\n" for s, r in zip(SOURCES, REFERENCES, strict=True))
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    assert read_json(out / "test_set.json") == {"name": "wmt14/full", "lines": 4, "sha256": sha256}
    assert f"scored on wmt14/full: 4 lines, sha256 {sha256}\n" in capsys.readouterr().out


def test_inputs_that_do_not_fit_the_test_set_are_refused(data: Path) -> None:
    """Line i of one would not translate line i of the other."""
    write_lines(data / "replaced" / "3" / "plain.tok.txt", ["a"])
    with pytest.raises(ValueError, match="per hypothesis, found 1 hypotheses and 4 references"):
        run(data, [3], replacement=True, heat_maps=2)
    assert not (data / "evaluation" / "pictures").exists()
