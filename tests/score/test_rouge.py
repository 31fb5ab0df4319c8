"""ROUGE: a table worked out by hand, and the official program's scores for lead baselines."""

from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.base.files import read_lines
from convs2s.score.rouge import SETTINGS, Rouge

GIGAWORD, DUC_2004 = SETTINGS["gigaword"], SETTINGS["duc2004"]
F1, RECALL = GIGAWORD, Rouge("recall", max_bytes=None, jackknife=False)

CAT, BED = "the cat was found under the bed", "the cat was under the bed"
POLICE, KILL, GUNMAN = "police shot the gunman", "police kill the gunman", "the gunman kill police"
# Summary, reference, and (hits, reference length, summary length) for words, bigrams and subsequence.
TABLE = [
    (CAT, BED, (6, 6, 7), (4, 5, 6), (6, 6, 7)),
    (BED, CAT, (6, 7, 6), (4, 6, 5), (6, 7, 6)),
    # the example of Lin (2004): bigrams do not distinguish the two, the subsequence does
    (KILL, POLICE, (3, 4, 4), (1, 3, 3), (3, 4, 4)),
    (GUNMAN, POLICE, (3, 4, 4), (1, 3, 3), (2, 4, 4)),
    # a repeated word counts as often as it is in both
    ("the the the the", "the cat the", (2, 3, 4), (0, 2, 3), (2, 3, 4)),
    ("cat the", "the cat the", (2, 3, 2), (1, 2, 1), (2, 3, 2)),
    # words of more than three letters are stemmed; gas keeps its s
    ("prices rising", "price rises", (2, 2, 2), (1, 1, 1), (2, 2, 2)),
    ("gas", "ga", (0, 1, 1), (0, 0, 0), (0, 1, 1)),
    # case, punctuation and hyphens; letters beyond ASCII separate words, and the Kelvin sign is no k
    ("U.S. X-ray: 3.5%!", "u s x ray 3 5", (6, 6, 6), (5, 5, 5), (6, 6, 6)),
    ("Größe", "gr e", (2, 2, 2), (1, 1, 1), (2, 2, 2)),
    ("\N{KELVIN SIGN}", "k", (0, 1, 0), (0, 0, 0), (0, 1, 0)),
    # one word has no bigram; empty text has no words
    ("cat", "cat", (1, 1, 1), (0, 0, 0), (1, 1, 1)),
    ("", "the cat", (0, 2, 0), (0, 1, 0), (0, 2, 0)),
    ("the cat", "", (0, 0, 2), (0, 0, 1), (0, 0, 2)),
    ("", "", (0, 0, 0), (0, 0, 0), (0, 0, 0)),
    ("日本\ud800", "日本", (0, 0, 0), (0, 0, 0), (0, 0, 0)),
]
NAMES = ("rouge1", "rouge2", "rougeL")
THREE = ["a b c d", "a x", "y z w"]


@pytest.mark.parametrize(("summary", "reference", "words", "bigrams", "subsequence"), TABLE)
def test_a_summary_has_the_recall_and_f1_worked_out_by_hand(
    summary: str,
    reference: str,
    words: tuple[int, int, int],
    bigrams: tuple[int, int, int],
    subsequence: tuple[int, int, int],
) -> None:
    """Recall is hits over the reference's length; F1 is hits over the mean of both lengths; 0/0 is 0."""
    recall, f1 = RECALL.score_one(summary, [reference]), F1.score_one(summary, [reference])
    for name, (hits, wanted, found) in zip(NAMES, (words, bigrams, subsequence), strict=True):
        assert recall[name] == pytest.approx(hits / wanted if wanted else 0)
        assert f1[name] == pytest.approx(2 * hits / (wanted + found) if hits else 0)


def test_several_references_count_together() -> None:
    """Hits are 4, 1 and 0 of 4, 2 and 3 words; the summary's four words count once per reference."""
    assert RECALL.score_one("a b c d", THREE)["rouge1"] == pytest.approx(5 / 9)
    assert F1.score_one("a b c d", THREE)["rouge1"] == pytest.approx(2 * 5 / (9 + 12))


def test_the_jackknife_is_the_mean_over_all_references_but_one() -> None:
    """By hand, for the sets {1, 2}, {1, 3}, {2, 3} of the references above; a single one is not left out."""
    recall = replace(RECALL, jackknife=True).score_one("a b c d", THREE)
    assert recall["rouge1"] == pytest.approx((5 / 6 + 4 / 7 + 1 / 5) / 3)
    assert recall["rouge2"] == pytest.approx((3 / 4 + 3 / 5 + 0) / 3)
    assert recall["rougeL"] == pytest.approx((5 / 6 + 4 / 7 + 1 / 5) / 3)
    assert replace(RECALL, jackknife=True).score_one("a b", ["a x"])["rouge1"] == pytest.approx(1 / 2)


@pytest.mark.parametrize(("limit", "hits"), [(4, 1), (5, 1), (6, 2), (7, 1)])
def test_a_limit_cuts_both_sides_within_words_and_characters(limit: int, hits: int) -> None:
    """With 4 or 5 bytes, the word is ab, with 6 also c, with 7 cd instead: half of é is not a letter."""
    cut = replace(RECALL, max_bytes=limit)
    assert cut.score_one("ab écd ef", ["c ab"])["rouge1"] == hits / 2
    assert cut.score_one("x", ["x" + " " * limit + "more"])["rouge1"] == 1


def test_scores_carry_their_signature() -> None:
    """Scores are means over summaries, in percent; pooling their words would give 10/13 below."""
    signature = DUC_2004.scores(["a"], [["a", "b"]])["rouge2"].signature
    assert signature.startswith("nrefs:2|measure:recall|bytes:75|stem:yes|refs:together|jackknife:yes|rouge-")
    scores = F1.scores([CAT, ""], [[BED], ["a b", "c"]])
    signature = "nrefs:var|measure:f1|bytes:all|stem:yes|refs:together|jackknife:no|rouge-"
    assert scores["rouge1"].signature.startswith(signature)
    assert scores["rouge1"].value == pytest.approx(100 * (12 / 13 + 0) / 2)


# The output of ROUGE-1.5.5.pl -n 2 -m, with -b 75 as named, for the beginning of each article of the Reuters
# test set against its headline, R-L.
OFFICIAL = [
    (DUC_2004, "bytes", (44.17, 16.96, 41.18)),
    (GIGAWORD, "bytes", (31.08, 11.42, 28.93)),
    (GIGAWORD, "words", (29.48, 10.81, 28.07)),
]


@pytest.mark.parametrize(("rouge", "lead", "official"), OFFICIAL)
def test_lead_baselines_score_nearly_as_the_official_program_says(
    rouge: Rouge, lead: str, official: tuple[float, float, float], shared_data: Path
) -> None:
    """Within 0.5 points, which its table of irregular words is worth; leads are 75 bytes or 8 words."""
    folder = shared_data / "reuters21578-headlines"
    articles, titles = (list(read_lines(folder / f"test.{name}.gz")) for name in ("article", "title"))
    leads = [a[:75] if lead == "bytes" else " ".join(a.split()[:8]) for a in articles]  # ASCII
    scores = rouge.scores(leads, [[title] for title in titles])
    assert [scores[name].value for name in NAMES] == pytest.approx(official, abs=0.5)
