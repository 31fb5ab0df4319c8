"""Where a text is split into sentences, and how their translations are joined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convs2s.text.sentences import join_sentences, split_sentences

SPLIT = [
    ("en", ["I like tea.  ", "She likes coffee.\t", "They live in Berlin."]),
    ("en", ["Mr. Smith, e.g., lives at St. Mary's. ", "It is 3.5 km away. ", '"Why?" he asked.']),
    ("en", ["1. Open the door. ", "2. Close it. ", "How many? ", "5."]),
    ("en", [" A heading\n\n", "Its text. ", "Goes on\n", "in another sentence.\r\n"]),
    ("de", ["Am 3. Mai kam z. B. Dr. Müller. ", "Er sagte: „Komm!“ ", "Dann ging er."]),
    ("fr", ["M. Dupont aime le thé. ", "Pourquoi ? ", "Je ne sais pas !"]),
    ("ja", ["彼は「はい。」と言った。", "『本当？』って聞いた。", "明日は雨です。"]),
    ("zh", ["我喜欢茶。", "她喜欢咖啡！", "为什么？"]),
    ("hi", ["मुझे चाय पसंद है। ", "उसे कॉफ़ी पसंद है।"]),
    ("xx", ["One thing. ", "Another thing."]),
    ("en", ["We make a team, you and I. ", "It is 9 P.M. ", "She earned her Ph.D. ", "Tom was impressed."]),
    ("es", ["Fueron 33.8°F. ", "Luego bajó. ", "Ayer vino J. Pérez."]),
    ("fr", ["Elle a vu M. Dupont. ", "Il vient."]),
    ("en", ["1. Open it ", "2. Close it"]),
    ("en", ["a) tea ", "b) coffee ", "c) milk"]),
    ("en", ["1. Open it. ", "2. Close it."]),
    ("en", ["ii. First\n", "(1). Second"]),
    ("de", ["1. Mai oder 2. Juni"]),
    ("zh", ["“你好！”她喊道，“快来！”他说。", "我走了。", "他说：“我来了。”", "她笑了。"]),
    ("nl", ["'s Avonds drinken we thee. ", "'s Morgens koffie. ", "'t Is mooi."]),
    ("en", ["(U.S.) Army men came. ", "(Dr.) Smith is here. ", "(Inc.) Tom. ", "(the U.S.) Army."]),
    ("en", ["(It was late.) ", "We left (all of us.) on Monday. ", "(Yes?) ", "No."]),
    ("en", ["I don't know… ", "Maybe. ", "Well… maybe not."]),
    ("ru", ["Я… не знаю… ", "Может быть."]),
    ("en", ["Nice to see you :) ", "Let's go. ", "Bye 😀 ", "See you :) soon."]),
    ("en", ["[DOOR OPENS] ", "Hello! ", "I read [it] twice.\n", "- [Tom] ", "Hi. ", "Bye."]),
    ("en", ["[1] A book. ", "Another."]),
    (
        "en",
        ["It is true.[a]", " He said so.[note 2]", " See {n, plural, one {A. B.} other {C. D.}}. ", "OK."],
    ),
    ("en", ["Put it in -- now! -- and wait. ", "– Good?"]),
    ("en", ["Name\t", "Age. ", "City\t\t", "5\n\t", "New row"]),
    ("en", ["| ", "Name | ", "Old. ", "Age |\n", "|---|---|\n", "a | b"]),
    ("en", ["Use ASP.NET or OS.File. ", "Booking.Com is here! ", "See https://a.org/B?c=D!. ", "OK."]),
    (
        "en",
        ["{count} files. ", "{name} has %s. ", "%d <b>dogs</b>. ", "<?php echo 'A. B'; ?> is it. ", "Yes."],
    ),
    ("en", ["I like tea.", "She likes coffee."]),
    ("en", ["Come with me. ", "Tom said no. ", "I'm OK. ", "See No. 5. ", "He left Ill. Mary did."]),
    ("en", ['He said: "Come with me." ', "Tom said “no.” ", "Mary left."]),
    ("en", ["See art. Five, id. Smith and no. XII. ", "She said no. ", "He came."]),
    ("fr", ["Voir le vol. Deux."]),
    ("nl", ["Zie app. Een. ", "Jan ging."]),
    ("de", ["Er kennt mich. ", "Tom weiß, was ich mag. ", "Mag. Huber kommt."]),
    ("sv", ["Jag vet det. ", "Tom vet. ", "Dr. med. Tom vet."]),
    ("en", ["It is approx. 5 miles, see Vol. 3, ch. 4 and Eq. (2). ", "I have a car. ", "5 of us left."]),
    ("it", ["Ho detto di no. ", "E tu vieni?"]),
    ("it", ["Vedi a pag. 12 del libro."]),
    ("nl", ["Dat is best. ", "U gaat."]),
    ("pt", ["Ver cap. 3 do livro."]),
    ("en", ["At the approx. 5 miles it ends."]),
    ("sv", ["Se sen. B."]),
    ("en", ["It is the max. ", "5 of us have a cap. ", "2 do not. ", "See no. 5."]),
    ("de", ["Der 2. Mann kam im 19. Jahrhundert. ", "Am 1. und 2. Tag. ", "Er ist 20. ", "Sie ist 30."]),
    ("de", ["Er kommt am 5. ", "Sie nicht. ", "Das ist der 2. ", "Ich bin der 1. Mann."]),
    ("de", ["Dipl.-Ing. Huber ist da. ", "Ja."]),
    ("fr", ["J.-P. Sartre est là. ", "Oui."]),
    ("sv", ["Det är t.ex. bra. ", "Ja."]),
    ("ru", ["Это хорошо, т. е. очень хорошо. ", "Да."]),
    ("en", ["  "]),
    ("en", []),
]
ALPHABET = [
    *" \t\n\r\v\x1c\x85\xa0\u2028\u3000.!?。？।「」『』'\"()aAbÉ日と1",
    "Mr.", "e.g. ", "A.", "3.5", "\ud800", "🦥", "\x00",
]  # fmt: skip


@pytest.mark.parametrize(("language", "sentences"), SPLIT)
def test_a_text_is_split_into_its_sentences(language: str, sentences: list[str]) -> None:
    """White space goes with the sentence before; the number of an item, a quote with what follows it."""
    assert split_sentences("".join(sentences), language) == sentences


@given(
    st.lists(st.sampled_from(ALPHABET), max_size=20), st.sampled_from(["en", "de", "ja", "zh", "hi", "xx"])
)
def test_nothing_is_lost(parts: list[str], language: str) -> None:
    """Whatever a text is, its sentences are it, and each has something in it."""
    text = "".join(parts)
    sentences = split_sentences(text, language)
    assert "".join(sentences) == text
    assert all(sentence.strip() for sentence in sentences) or len(sentences) == 1
    joined = join_sentences(sentences, ["x"] * len(sentences), "de")
    assert joined.count("\n") == text.strip().count("\n") or not text.strip()


@given(st.text(max_size=60))
def test_any_characters_can_be_split(text: str) -> None:
    """Users paste anything; sentencex alone fails on some white space after an initial."""
    assert "".join(split_sentences(text, "en")) == text


@pytest.mark.parametrize(
    ("sentences", "language", "text"),
    [
        (["A.  ", "B.\t", "C.\r\n\r\n", "D. "], "de", "x  x\tx\r\n\r\nx"),
        (["彼だ。", "雨だ。\u3000", "はい。"], "en", "x x x"),
        (["A. ", "B.  ", "C."], "ja", "xx  x"),
        (["A.\u2028", "B.\r", "C."], "de", "x x x"),
        ([], "de", ""),
    ],
)
def test_white_space_between_sentences_stays(sentences: list[str], language: str, text: str) -> None:
    """But a single space is what the target language has between sentences, and a line stays one line."""
    assert join_sentences(sentences, ["x"] * len(sentences), language) == text
