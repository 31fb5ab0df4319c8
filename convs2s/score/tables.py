"""Tables of results: scores of each model with mean and standard deviation, by length, and examples."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import pandas as pd

from convs2s.score.corpus_scores import WORDS, bleu, chrf

DIGITS = {
    "bleu": 2, "bleu_tokenized": 2, "chrf": 2, "rouge1": 2, "rouge2": 2, "rougeL": 2,
    "length_ratio": 4, "unknown_words": 1,
}  # fmt: skip
"""Decimals of each score in tables; 0.01 BLEU is far below the spread between seeds."""
LONGEST = (5, 10, 15, 20, 30, 50)
"""Longest source sentence of each length class, in words; one more class holds the rest."""


def score_table(results: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return a row per result, and rows `mean` and `std` over the seeds of each text.

    A result has `text`: `plain`, or `replaced` if unknown words were replaced; `member`: a seed, or
    `ensemble`; and scores by name. The standard deviation is that of a sample, divided by n - 1; with one
    seed there is none. The columns are text, member, then the scores, rounded, in the order of DIGITS.
    """
    table = pd.DataFrame(results)
    names = score_names(table)
    table = table[["text", "member", *names]]
    parts = []
    for text, rows in table.groupby("text", sort=False):
        single = rows["member"] != "ensemble"
        seeds = rows.loc[single, names]
        summary = pd.DataFrame([seeds.mean()] + ([seeds.std(ddof=1)] if len(seeds) > 1 else []))
        summary.insert(0, "member", ["mean", "std"][: len(summary)])
        summary.insert(0, "text", text)
        parts += [rows[single], summary, rows[~single]]
    return pd.concat(parts, ignore_index=True).round(DIGITS)


def score_names(table: pd.DataFrame) -> list[str]:
    """Return the columns of a table that are scores, in the order of DIGITS."""
    return [name for name in DIGITS if name in table.columns]


def nested_metrics(table: pd.DataFrame, text: str) -> dict[str, object]:
    """Return the scores of one text, nested as shown by DVC: seeds.1.bleu, mean.bleu, ..."""
    rows, names = table[table["text"] == text], score_names(table)
    scores = {
        str(member): {name: float(value) for name, value in zip(names, values, strict=True)}
        for member, *values in rows[["member", *names]].itertuples(index=False)
    }
    seeds = {name: scores.pop(name) for name in list(scores) if name not in {"mean", "std", "ensemble"}}
    return {"seeds": seeds, **scores}


def length_class(words: int) -> str:
    """Return the length class of a source sentence with this many words; names sort by length."""
    place = bisect_left(LONGEST, words)
    shortest = LONGEST[place - 1] + 1 if place else 0
    return f"{shortest:02}-{LONGEST[place]:02}" if place < len(LONGEST) else f"{shortest:02}+"


def length_table(
    source_words: Sequence[int],
    systems: Sequence[Sequence[str]],
    references: Sequence[str],
    tokenizer: str = WORDS,
) -> pd.DataFrame:
    """Return BLEU and chrF of detokenized text for each class of source length, shortest first.

    The scores are means over systems, and `source_words` has the length of each source sentence. The columns
    are source_words (the class), sentences, bleu, chrf; empty classes are left out.
    """
    members: dict[str, list[int]] = {}
    for index, words in enumerate(source_words):
        members.setdefault(length_class(words), []).append(index)
    rows = []
    for name, indices in sorted(members.items()):
        of_class = [references[i] for i in indices]
        texts = [[system[i] for i in indices] for system in systems]
        rows.append({
            "source_words": name,
            "sentences": len(of_class),
            "bleu": sum(bleu(lines, of_class, tokenizer).value for lines in texts) / len(texts),
            "chrf": sum(chrf(lines, of_class).value for lines in texts) / len(texts),
        })  # fmt: skip
    return pd.DataFrame(rows).round(DIGITS)


def spread(candidates: Sequence[int], count: int) -> list[int]:
    """Return `count` evenly spaced candidates, or all if there are fewer."""
    count = min(count, len(candidates))
    return [candidates[(2 * i + 1) * len(candidates) // (2 * count)] for i in range(count)]


def join_cells(table: pd.DataFrame) -> list[str]:
    """Return a table as lines of tab-separated values, its header first; nothing is quoted.

    A tab or carriage return within a value becomes a space, so that every row stays one line.
    """
    rows = [list(table.columns), *table.itertuples(index=False)]
    return ["\t".join(str(value).replace("\t", " ").replace("\r", " ") for value in row) for row in rows]
