"""ROUGE: a table worked out by hand, and the official program's scores for lead baselines."""

from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.score.rouge import DUC_2004, GIGAWORD, Rouge
from convs2s.text.corpus.files import read_lines

F1 = replace(GIGAWORD, stem=False)
RECALL = Rouge("recall", max_bytes=None, stem=False, best_reference=False, jackknife=False)

CAT, BED = "the cat was found under the bed", "the cat was under the bed"
POLICE, KILL, GUNMAN = "police killed the gunman", "police kill the gunman", "the gunman kill police"
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
    recall, f1 = RECALL.of_one(summary, [reference]), F1.of_one(summary, [reference])
    for name, (hits, wanted, found) in zip(NAMES, (words, bigrams, subsequence), strict=True):
        assert recall[name] == pytest.approx(hits / wanted if wanted else 0)
        assert f1[name] == pytest.approx(2 * hits / (wanted + found) if hits else 0)


def test_a_score_is_the_mean_over_summaries_in_percent() -> None:
    """The program does the same; pooling the words of all summaries would give 10/13 here."""
    scores = F1.scores([CAT, ""], [[BED], ["a b c"]])
    assert scores["rouge1"].value == pytest.approx(100 * (12 / 13 + 0) / 2)
    assert scores["rouge2"].value == pytest.approx(100 * (8 / 11 + 0) / 2)


def test_several_references_count_together() -> None:
    """Hits are 4, 1 and 0 of 4, 2 and 3 words; the summary's four words count once per reference."""
    assert RECALL.of_one("a b c d", THREE)["rouge1"] == pytest.approx(5 / 9)
    assert F1.of_one("a b c d", THREE)["rouge1"] == pytest.approx(2 * 5 / (9 + 12))


def test_the_jackknife_is_the_mean_over_all_references_but_one() -> None:
    """By hand, for the sets {1, 2}, {1, 3}, {2, 3} of the references above."""
    recall = replace(RECALL, jackknife=True).of_one("a b c d", THREE)
    assert recall["rouge1"] == pytest.approx((5 / 6 + 4 / 7 + 1 / 5) / 3)
    assert recall["rouge2"] == pytest.approx((3 / 4 + 3 / 5 + 0) / 3)
    assert recall["rougeL"] == pytest.approx((5 / 6 + 4 / 7 + 1 / 5) / 3)
    f1 = replace(F1, jackknife=True).of_one("a b c d", THREE)
    assert f1["rouge1"] == pytest.approx((10 / 14 + 8 / 15 + 2 / 13) / 3)


def test_a_single_reference_is_not_left_out() -> None:
    """Leaving out the only reference would leave none."""
    assert replace(RECALL, jackknife=True).of_one("a b", ["a x"])["rouge1"] == pytest.approx(1 / 2)


def test_the_best_reference_can_count_alone() -> None:
    """As -f B: the one with the best recall, for F1, too; with the jackknife, the best of each set."""
    best = replace(RECALL, best_reference=True)
    assert best.of_one("a b c d", THREE)["rouge1"] == 1
    of_sets = replace(best, jackknife=True).of_one("a b c d", THREE)
    assert of_sets["rouge1"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    # 3 of 5 words, or the only one: the better recall has the lesser F1
    f1 = replace(F1, best_reference=True).of_one("a c c c c", ["a c c d d", "a"])
    assert f1["rouge1"] == pytest.approx(2 * 1 / (1 + 5))


@pytest.mark.parametrize(
    ("limit", "words"), [(2, ["ab"]), (4, ["ab"]), (5, ["ab"]), (6, ["ab", "c"]), (7, ["ab", "cd"])]
)
def test_a_limit_cuts_within_words_and_characters(limit: int, words: list[str]) -> None:
    """é is bytes 4 and 5: half of it is not a letter, and half a word is a different word."""
    assert replace(RECALL, max_bytes=limit).words("ab écd ef") == words


def test_bytes_beyond_75_do_not_count_on_either_side() -> None:
    """15 words of four letters and a space are 75 bytes; the program cuts references as well."""
    fifteen = " ".join(f"w{i:03}" for i in range(15)) + " "
    assert len(fifteen) == 75
    duc = replace(DUC_2004, stem=False)
    assert duc.of_one(fifteen + "more", [fifteen + "more"])["rouge1"] == 1
    assert duc.of_one(fifteen + "more", ["more"])["rouge1"] == 0
    assert duc.of_one("w000", [fifteen + "more and more"])["rouge1"] == pytest.approx(1 / 15)


def test_words_of_more_than_three_letters_are_stemmed() -> None:
    """Gas has three letters and keeps its s; said becomes its base, say."""
    assert GIGAWORD.words("Gas prices said rising") == ["gas", "price", "say", "rise"]
    assert F1.words("Gas prices said rising") == ["gas", "prices", "said", "rising"]


def test_scores_carry_their_signature() -> None:
    """Scores are comparable only with the same stemming, length limit and number of references."""
    signature = DUC_2004.scores(["a"], [["a", "b"]])["rouge2"].signature
    wanted = "nrefs:2|measure:recall|bytes:75|stem:yes|refs:together|jackknife:yes|rouge-score:"
    assert signature.startswith(wanted)
    assert F1.scores(["a", "b"], [["a", "b"], ["c"]])["rouge1"].signature.startswith(
        "nrefs:var|measure:f1|bytes:all|stem:no|refs:together|jackknife:no|"
    )


def test_texts_that_do_not_match_up_are_refused() -> None:
    """A shifted line would score nearly 0, for no visible reason."""
    with pytest.raises(ValueError, match=r"found 2 summaries but references for 1; wanted one or more"):
        F1.scores(["a", "b"], [["a"]])
    with pytest.raises(ValueError, match=r"there are no summaries to score; is the test set"):
        F1.scores([], [])
    with pytest.raises(ValueError, match=r"summary 2 has no reference; wanted one or more\. Leave"):
        F1.scores(["a", "b"], [["a"], []])


# The output of ROUGE-1.5.5.pl -n 2, with -m and -b 75 as named, for the beginning of each article of the
# Reuters test set against its headline, R-L. The means of its bootstrap samples are a few
# hundredths above those of the summaries.
OFFICIAL = [
    (DUC_2004, "bytes", (44.17, 16.96, 41.18)),
    (replace(DUC_2004, stem=False), "bytes", (39.73, 15.36, 37.22)),
    (GIGAWORD, "bytes", (31.08, 11.42, 28.93)),
    (F1, "bytes", (28.03, 10.37, 26.23)),
    (GIGAWORD, "words", (29.48, 10.81, 28.07)),
    (F1, "words", (26.54, 9.79, 25.37)),
]


@pytest.mark.parametrize(("rouge", "lead", "official"), OFFICIAL)
def test_lead_baselines_score_as_the_official_program_says(
    rouge: Rouge, lead: str, official: tuple[float, float, float], shared_data: Path
) -> None:
    """They agree within 0.1 points, mostly the program's sampling error; leads are 75 bytes or 8 words."""
    folder = shared_data / "reuters21578-headlines"
    articles, titles = (list(read_lines(folder / f"test.{name}.gz")) for name in ("article", "title"))
    leads = [a[:75] if lead == "bytes" else " ".join(a.split()[:8]) for a in articles]  # ASCII
    scores = rouge.scores(leads, [[title] for title in titles])
    assert [scores[name].value for name in NAMES] == pytest.approx(official, abs=0.1)
