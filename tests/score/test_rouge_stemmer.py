"""The stemmer of ROUGE-1.5.5: its stems must equal the program's."""

import pytest

from convs2s.score.irregular_words import ENTRIES
from convs2s.score.rouge_stemmer import RougeStemmer

STEMS = {
    # Porter's own rules, without NLTK's extensions
    "says": "sai", "buying": "bui", "news": "new", "monday": "mondai", "technology": "technolog",
    "possibly": "possibl", "relational": "relat", "hopping": "hop", "controlled": "control",
    # one suffix of step 4 uncovers another
    "agreement": "agreem", "agreements": "agreem", "continental": "contin", "professional": "profess",
    "protectionism": "protect", "protection": "protect", "parliament": "parliam",
    # but -ion uncovers none
    "contravention": "contravent",
    # irregular words are not stemmed further: choose itself becomes choos
    "said": "say", "rose": "rise", "women": "women", "children": "child", "chosen": "choose",
    "choose": "choos", "1987": "1987",
}  # fmt: skip


def test_forms_in_ied_ier_and_iest_have_the_base_of_wordnet() -> None:
    """The base is not stemmed: in ROUGE-1.5.5, carried (carry) matches neither carries nor carry (carri)."""
    stem = RougeStemmer().stem
    assert [stem(word) for word in ("carried", "carries", "carry")] == ["carry", "carri", "carri"]
    assert [stem(word) for word in ("happier", "happiest", "happy")] == ["happy", "happy", "happi"]
    assert [stem(word) for word in ("tied", "soldier", "frontier")] == ["ti", "soldier", "frontier"]


@pytest.mark.parametrize("word", STEMS)
def test_a_word_has_the_stem_that_the_program_gives_it(word: str) -> None:
    """Stems were printed by ROUGE-1.5.5 itself; women is in no exception list, so it stays."""
    assert RougeStemmer().stem(word) == STEMS[word]


def test_every_irregular_form_has_one_base() -> None:
    """A form listed twice would silently get the later base; three-letter words are never looked up."""
    forms = [form for _, *forms in ENTRIES for form in forms]
    assert len(forms) == len(set(forms)) > 300
    assert min(map(len, forms)) == 4
