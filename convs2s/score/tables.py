"""Tables of results: scores of each model with mean and standard deviation, by length, and examples."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from convs2s.score.corpus_scores import WORDS, bleu, chrf
from convs2s.score.kinds import DIGITS

CLASSES = ("00-05", "06-10", "11-15", "16-20", "21-30", "31-50", "51+")
"""Classes of source sentences by their number of words."""
LONGEST = (5, 10, 15, 20, 30, 50)
"""The longest sentence of each class but the last."""


def score_table(results: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return a row per result, and rows `mean` and `std` over the seeds of each text.

    A result has `text`: `plain`, or `replaced` if unknown words were replaced; `member`: a seed, or
    `ensemble`; and scores by name. The standard deviation is that of a sample, divided by n - 1; with one
    seed there is none. The columns are text, member, then the scores, rounded, in the order of SCORES; a
    ValueError names a score that SCORES lacks.
    """
    table = pd.DataFrame(results)
    if unknown := [str(name) for name in table if name not in ("text", "member", *DIGITS)]:
        raise ValueError(
            f"expected scores that SCORES in convs2s/score/kinds.py names, found {', '.join(unknown)}: add a "
            "row there"
        )
    names = [name for name in DIGITS if name in table]
    parts = []
    for text, rows in table.groupby("text", sort=False):
        is_seed = rows["member"] != "ensemble"
        seeds = rows[is_seed]
        summary = seeds[names].agg(["mean", "std"] if len(seeds) > 1 else ["mean"])
        summary = summary.rename_axis("member").reset_index()
        parts += [seeds, summary.assign(text=text), rows[~is_seed]]
    return pd.concat(parts, ignore_index=True)[["text", "member", *names]].round(DIGITS)


def nested_metrics(table: pd.DataFrame, text: str) -> dict[str, object]:
    """Return the scores of one text, nested as shown by DVC: seeds.1.bleu, mean.bleu, ..."""
    rows = table[table["text"] == text].set_index("member").drop(columns="text")
    scores: dict[Any, object] = dict(rows.to_dict("index"))
    seeds = {member: scores.pop(member) for member in list(scores) if member.isdigit()}
    return {"seeds": seeds, **scores}


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
    classes = [CLASSES[bisect_left(LONGEST, words)] for words in source_words]
    rows = []
    for name in sorted(set(classes)):
        indices = [i for i, length_class in enumerate(classes) if length_class == name]
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
