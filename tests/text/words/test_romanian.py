from convs2s.text.words.romanian import comma_below, without_diacritics


def test_cedillas_become_commas_and_nothing_else_changes() -> None:
    """Both spellings are in the corpora, and would be different words."""
    text = "Ţara şi ţările: \u015e\u015f\u0162\u0163 \u0218\u0219\u021a\u021b ăâîç Ç naïve"
    assert comma_below(text) == "Țara și țările: ȘșȚț ȘșȚț ăâîç Ç naïve"


def test_only_romanian_diacritics_are_removed() -> None:
    """By either spelling; a French name in Romanian text is not Romanian."""
    assert without_diacritics("Ţară, țară, Știință, în Âmbele, Ăla, Îl; François") == (
        "Tara, tara, Stiinta, in Ambele, Ala, Il; François"
    )
