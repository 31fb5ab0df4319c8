"""Evaluate translations of a test set: all scores of every system, scores by source length, examples."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from convs2s.base.files import atomic_path, further_references, read_lines, write_json
from convs2s.config.tokenize import TokenizeParams
from convs2s.score.corpus_scores import (
    METRICS,
    UNKNOWN,
    WORDS,
    Score,
    choose_tokenizer,
    length_ratio,
    score_corpus,
    sentence_bleu,
    sentence_chrf,
    tokenized_bleu,
)
from convs2s.score.kinds import DIGITS, SCORES
from convs2s.score.tables import length_table, nested_metrics, score_table, spread
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


def read_references(folder: Path, params: TokenizeParams, languages: tuple[str, str]) -> ReferenceSet:
    """Read a test set, and tokenize it like the training text."""
    source_tokenizer, target_tokenizer = (Tokenizer(language, params) for language in languages)
    sources, *targets = (
        list(read_lines(path))
        for path in (folder / "source.txt", folder / "target.txt", *further_references(folder))
    )
    cleaned = [[target_tokenizer.reference(line) for line in lines] for lines in targets]
    return ReferenceSet(
        sources=sources,
        references=cleaned[0],
        source_lengths=[len(source_tokenizer.words(line)) for line in sources],
        tokenized_references=[" ".join(target_tokenizer.words(line)) for line in targets[0]],
        all_references=list(zip(*cleaned, strict=True)),
        tokenizer=choose_tokenizer(languages[1]),
    )


def evaluate(texts: Sequence[ScoredText], references: ReferenceSet, rouge: str | None, out: Path) -> None:
    """Score translations, with ROUGE if its settings are named; write the scores to a folder.

    The texts are grouped by name, each for all members; the last name's texts are the final ones. scores.csv
    has all scores; by_length.csv those of the seeds' final texts by source length; metrics.json the final
    text's, nested by member, and those of plain text under without_replacement.
    """
    scores = [score_text(text, references, rouge) for text in texts]
    rows = []
    for text, scores_of_text in zip(texts, scores, strict=True):
        values = {name: score.value for name, score in scores_of_text.items()}
        rows.append({"text": text.text, "member": text.member, **values})
    table = score_table(rows)
    final = texts[-1].text
    metrics = nested_metrics(table, final)
    if texts[0].text != final:
        metrics["without_replacement"] = nested_metrics(table, texts[0].text)
    seeds = [text.lines for text in texts if text.text == final and text.member != "ensemble"]
    by_length = length_table(references.source_lengths, seeds, references.references, references.tokenizer)
    for name, frame in (("scores.csv", table), ("by_length.csv", by_length)):
        with atomic_path(out / name) as temporary:
            frame.to_csv(temporary, index=False, encoding="utf-8", lineterminator="\n")
    write_json(out / "metrics.json", metrics)
    signatures = {name: scores[0][name].signature for name in SCORES if name in scores[0]}
    signatures = {name: signature for name, signature in signatures.items() if signature}
    write_json(out / "signatures.json", signatures)


def score_text(text: ScoredText, references: ReferenceSet, rouge: str | None) -> dict[str, Score]:
    """Return all scores of a translation by name, mixed case; each has a row in `convs2s.score.kinds`.

    ROUGE is among them if its settings are named.
    `length_ratio` is words of the hypotheses / words of the references; `unknown_words` is how often `<unk>`
    occurs in the hypotheses. These two have no signature.
    """
    unknowns = sum(line.split().count(UNKNOWN) for line in text.tokenized)
    rouge_scores: dict[str, Score] = {}
    if rouge:
        from convs2s.score.rouge import SETTINGS  # noqa: PLC0415  # NLTK takes a fifth of a second

        rouge_scores = SETTINGS[rouge].scores(text.lines, references.all_references)
    return {
        **{
            name: score_corpus(make_metric(references.tokenizer), text.lines, references.references)
            for name, make_metric in METRICS.items()
        },
        "bleu_tokenized": tokenized_bleu(text.tokenized, references.tokenized_references),
        "length_ratio": Score(length_ratio(text.tokenized, references.tokenized_references), ""),
        "unknown_words": Score(unknowns, ""),
        **rouge_scores,
    }


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
