"""Evaluate translations of a test set: all scores of every system, scores by source length, examples."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from convs2s.score.corpus_scores import (
    TOKENIZERS,
    UNKNOWN,
    WORDS,
    bleu,
    chrf,
    length_ratio,
    sentence_bleu,
    sentence_chrf,
    signatures,
    tokenized_bleu,
)
from convs2s.score.rouge import NAMES, SETTINGS, Rouge
from convs2s.score.tables import DIGITS, length_table, nested_metrics, score_table, spread
from convs2s.text.words.tokenization import Tokenizer


class ReferenceSet(NamedTuple):
    """The references of a test set, to score translations against: an item per sentence."""

    sources: list[str]
    references: list[str]
    """For detokenized translations."""
    source_lengths: list[int]
    """In words."""
    tokenized_references: list[str]
    all_references: list[tuple[str, ...]]
    """The reference of each sentence and any additional ones; ROUGE uses them all."""
    tokenizer: str = WORDS
    """BLEU's tokenizer for detokenized text."""


class ScoredText(NamedTuple):
    """A translation of the test set, to be scored: an item per sentence."""

    member: str
    """A seed, or `ensemble`."""
    text: str
    """`plain`, or `replaced`: with unknown words replaced."""
    lines: list[str]
    tokenized: list[str]


class Evaluation(NamedTuple):
    """The scores of all texts."""

    scores: pd.DataFrame
    """A row per text and member, as returned by `tables.score_table`."""
    by_length: pd.DataFrame
    """Of the seeds' final texts, as returned by `tables.length_table`."""
    metrics: Mapping[str, object]
    """The final text's scores, nested by member; those of plain text under without_replacement."""
    signatures: Mapping[str, str]


def tokenize_references(
    sources: list[str],
    references: list[str],
    further: Sequence[Sequence[str]],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
) -> ReferenceSet:
    """Tokenize a test set like the training text; `further` has additional references of all sentences."""
    cleaned = [[target_tokenizer.reference(line) for line in lines] for lines in (references, *further)]
    return ReferenceSet(
        sources=sources,
        references=cleaned[0],
        source_lengths=[len(source_tokenizer.words(line)) for line in sources],
        tokenized_references=[" ".join(target_tokenizer.words(line)) for line in references],
        all_references=list(zip(*cleaned, strict=True)),
        tokenizer=TOKENIZERS.get(target_tokenizer.language, WORDS),
    )


def evaluate(texts: Sequence[ScoredText], references: ReferenceSet, rouge: str | None) -> Evaluation:
    """Score translations, with ROUGE if its settings are named.

    The texts are grouped by name, each for all members; the last name's texts are the final ones.
    """
    settings = SETTINGS[rouge] if rouge else None
    scores = score_table([score_text(text, references, settings) for text in texts])
    final = texts[-1].text
    metrics = nested_metrics(scores, final)
    if texts[0].text != final:
        metrics["without_replacement"] = nested_metrics(scores, texts[0].text)
    seeds = [text.lines for text in texts if text.text == final and text.member != "ensemble"]
    by_length = length_table(references.source_lengths, seeds, references.references, references.tokenizer)
    named = {name: settings.signature(references.all_references) for name in NAMES} if settings else {}
    return Evaluation(scores, by_length, metrics, signatures(references.tokenizer) | named)


def score_text(text: ScoredText, references: ReferenceSet, rouge: Rouge | None) -> dict[str, object]:
    """Return all scores of a translation by name, mixed case, as a row for `tables.score_table`.

    `length_ratio` is words of the hypotheses / words of the references; `unknown_words` is how often `<unk>`
    occurs in the hypotheses.
    """
    scores: dict[str, object] = {
        "text": text.text,
        "member": text.member,
        "bleu": bleu(text.lines, references.references, references.tokenizer).value,
        "bleu_tokenized": tokenized_bleu(text.tokenized, references.tokenized_references).value,
        "chrf": chrf(text.lines, references.references).value,
        "length_ratio": length_ratio(text.tokenized, references.tokenized_references),
        "unknown_words": sum(line.split().count(UNKNOWN) for line in text.tokenized),
    }
    if rouge:
        rouge_scores = rouge.scores(text.lines, references.all_references)
        scores |= {name: score.value for name, score in rouge_scores.items()}
    return scores


def choose_examples(text: ScoredText, references: ReferenceSet, count: int) -> pd.DataFrame:
    """Return `count` sentences, spread over the test set, with their translations and own BLEU and chrF.

    Lines are counted from 1.
    """
    chosen = spread([i for i, words in enumerate(references.source_lengths) if words], count)
    columns = ["line", "model", "source", "hypothesis", "reference", "bleu", "chrf"]
    rows = [
        (
            i + 1, text.member, references.sources[i], text.lines[i], references.references[i],
            sentence_bleu(text.lines[i], references.references[i], references.tokenizer),
            sentence_chrf(text.lines[i], references.references[i]),
        )
        for i in chosen
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).round(DIGITS)
