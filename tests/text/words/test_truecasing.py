"""Truecasing, as in Moses."""

from collections import Counter

from sacremoses import MosesDetruecaser, MosesTruecaser

from convs2s.text.words.tokenization import Tokenizer
from convs2s.text.words.truecasing import Truecaser, detruecase, words_inside
from tests.decode.parrot import TOKENIZE

TEXT = [
    'The cat , said Paris : " The end . " It rains .',
    "we saw Paris and the Cat ( The 2nd ) .",
    "( Well , the cat . . . ) US and us",
    "' It is THE cat ! ' 3 dogs : Dogs bark",
]


def count(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in words_inside(line.split()))


def test_words_get_the_case_they_have_most_often() -> None:
    """This holds at sentence starts; elsewhere, a known word keeps its case, another gets the best known."""
    truecaser = Truecaser(Counter({"the": 9, "The": 1, "Paris": 5, "apple": 2, "Apple": 1, "US": 1}))
    text = "The Apple . Apple PARIS : THE The Zebra . Zebra ( The"
    cased = "the Apple . apple Paris : the The Zebra . Zebra ( The"
    assert truecaser.truecase(text.split()) == cased.split()


def test_a_tie_is_decided_by_spelling() -> None:
    """The first to occur would depend on how the text is divided into chunks."""
    for words in (["us", "US"], ["US", "us"]):
        assert Truecaser(Counter(words)).truecase(["Us"]) == ["US"]


def test_sentences_get_their_capitals_back() -> None:
    """This includes sentences within the line and after a quote."""
    text = 'the cat sleeps . " it dreams " : then ( quietly ) &apos; élan'
    cased = 'The cat sleeps . " It dreams " : Then ( quietly ) &apos; élan'
    assert detruecase(text.split()) == cased.split()
    assert detruecase([]) == []


def test_turkish_has_two_letters_i() -> None:
    """The capitals of i and ı are İ and I in Turkish; elsewhere I is the capital of i."""
    assert detruecase(["istanbul", ".", "ısı", ".", "ev"], "tr") == ["İstanbul", ".", "Isı", ".", "Ev"]
    assert detruecase(["istanbul", "isı"], "en") == ["Istanbul", "isı"]
    counts = {"istiyorum": 3, "ısı": 2}
    words = ["İstiyorum", ".", "Isı", ".", "ISI", ".", "İSTİYORUM"]
    assert Truecaser(counts, "tr").truecase(words) == ["istiyorum", ".", "ısı", ".", "ısı", ".", "istiyorum"]
    tokenizer = Tokenizer("tr", TOKENIZE.model_copy(update={"lowercase": True}))
    assert tokenizer.tokenize("Isı İÇİN") == ["ısı", "için"]
    assert tokenizer.reference("Isı İÇİN") == "ısı için"


def test_georgian_sentences_have_no_capitals() -> None:
    """Unicode has capitals for Georgian headlines, and upper() returns them."""
    assert detruecase(["ეს", "სახლია", ".", "ღია"], "ka") == ["ეს", "სახლია", ".", "ღია"]


def theirs(counts: Counter[str]) -> MosesTruecaser:
    """Return sacremoses' truecaser with these counts, and ties broken as in ours."""
    truecaser = MosesTruecaser()
    best: dict[str, str] = {}
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        best.setdefault(word.lower(), word)
    truecaser.model = {"best": best, "known": Counter(counts)}
    return truecaser


def test_rules_equal_sacremoses() -> None:
    """sacremoses is an independent implementation of the scripts of Moses that our rules follow."""
    counts = count(TEXT)
    learner = MosesTruecaser()
    learned = Counter(word for line in TEXT for _, word, _ in learner.learn_truecase_weights(line.split()))
    assert counts == learned
    ours, judge, detruecaser = Truecaser(counts), theirs(counts), MosesDetruecaser()
    for line in TEXT:
        cased = ours.truecase(line.split())
        # Moses leaves known words as they are; sacremoses does so only on request.
        assert cased == judge.truecase(line, use_known=True)
        assert detruecase(cased) == detruecaser.detruecase(" ".join(cased))
