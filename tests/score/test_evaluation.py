import pytest

from convs2s.score.corpus_scores import bleu
from convs2s.score.evaluation import (
    ReferenceSet,
    ScoredText,
    choose_examples,
    evaluate,
    tokenize_references,
)
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE

SOURCES = ["the girl sleeps here .", "", "no ."]
REFERENCES = ["das Mädchen schläft hier.", "", "nein."]


@pytest.fixture
def references() -> ReferenceSet:
    """Return a test set of three sentences, one of them empty, with two references each."""
    tokenizers = Tokenizer("en", TOKENIZE), Tokenizer("de", TOKENIZE)
    return tokenize_references(SOURCES, REFERENCES, [["ein Mädchen schläft.", "", "nö."]], *tokenizers)


def text(member: str, name: str, line: str) -> ScoredText:
    """Return a translation that is right except for its first sentence."""
    lines = [line, *REFERENCES[1:]]
    return ScoredText(member, name, lines, [one.replace(".", " .") for one in lines])


@pytest.mark.parametrize(("language", "name"), [("ja", "char"), ("zh", "zh"), ("ko", "13a")])
def test_languages_without_spaces_are_scored_in_characters(language: str, name: str) -> None:
    """As a single word, each sentence would score 0 or 100; the signature names the tokenization."""
    tokenizers = Tokenizer("en", TOKENIZE), Tokenizer(language, TOKENIZE)
    target = ["猫が家で寝ています。", "私は海を見ました。"]
    found = tokenize_references(["the cat sleeps", "I saw the sea"], target, [], *tokenizers)
    lines = ["犬が家で寝ています。", "私は海を見ました。"]
    scored = evaluate([ScoredText("1", "plain", lines, lines)], found, None)
    assert scored.metrics["seeds"]["1"]["bleu"] == round(bleu(lines, target, name).value, 2)  # type: ignore[index]
    assert f"tok:{name}" in scored.signatures["bleu"]
    assert (bleu(lines, target, name).value > 80) == (name != "13a")
    assert scored.by_length["bleu"].tolist() == [scored.metrics["seeds"]["1"]["bleu"]]  # type: ignore[index]
    examples = choose_examples(ScoredText("1", "plain", lines, lines), found, 2)
    assert (examples["bleu"] > 60).tolist() == [name != "13a", True]


def test_the_last_text_gives_the_main_scores(references: ReferenceSet) -> None:
    """Plain text is scored, too; scores by length use the seeds' final texts, without the ensemble.

    ROUGE comes with its signatures, which count the further references.
    """
    plain, good = "das <unk> schläft hier.", REFERENCES[0]
    texts = [text("1", "plain", plain), text("2", "plain", plain), text("ensemble", "plain", plain)]
    texts += [text("1", "replaced", good), text("2", "replaced", good), text("ensemble", "replaced", "das.")]
    found = evaluate(texts, references, rouge="duc2004")
    assert found.metrics["seeds"]["1"]["bleu"] == 100.0  # type: ignore[index]
    before = round(bleu(texts[0].lines, REFERENCES).value, 2)
    assert found.metrics["without_replacement"]["seeds"]["1"]["bleu"] == before  # type: ignore[index]
    assert found.by_length["chrf"].tolist() == [100.0]
    assert found.signatures.keys() == {"bleu", "bleu_tokenized", "chrf", "rouge1", "rouge2", "rougeL"}
    assert found.signatures["rouge1"].startswith("nrefs:2|")
    assert "rougeL" in found.scores.columns


def test_examples_are_of_sentences_that_are_not_empty(references: ReferenceSet) -> None:
    """Lines count from 1, as in the test set's files."""
    examples = choose_examples(text("3", "plain", "das ."), references, count=5)
    assert examples["line"].tolist() == [1, 3]
    assert set(examples["model"]) == {"3"}
