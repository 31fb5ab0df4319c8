from convs2s.text.words.orthography import comma_below, without_diacritics


def test_cedillas_become_commas_and_nothing_else_changes() -> None:
    """The corpora have both spellings, which would be different words."""
    text = "Ţara şi ţările: \u015e\u015f\u0162\u0163 \u0218\u0219\u021a\u021b ăâîç Ç naïve"
    assert comma_below(text) == "Țara și țările: ȘșȚț ȘșȚț ăâîç Ç naïve"


def test_only_romanian_diacritics_are_removed() -> None:
    """Both spellings count; a French name in Romanian text keeps its accents."""
    assert without_diacritics("Ţară, țară, Știință, în Âmbele, Ăla, Îl; François") == (
        "Tara, tara, Stiinta, in Ambele, Ala, Il; François"
    )
