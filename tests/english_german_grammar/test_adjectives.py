from tests.english_german_grammar.lookup import adjective


def test_degrees_in_both_languages() -> None:
    """English forms depend on length, German ones on umlauts and sibilants."""
    wanted = {
        ("old", "thing"): ("older", "oldest", "älter", "ältest"),
        ("good", "thing"): ("better", "best", "besser", "best"),
        ("heavy", "thing"): ("heavier", "heaviest", "schwerer", "schwerst"),
        ("big", "thing"): ("bigger", "biggest", "größer", "größt"),
        ("expensive", "thing"): ("more expensive", "most expensive", "teurer", "teuerst"),
        ("famous", "person"): ("more famous", "most famous", "berühmter", "berühmtest"),
        ("exciting", "event"): ("more exciting", "most exciting", "spannender", "spannendst"),
        ("wide", "thing"): ("wider", "widest", "breiter", "breitest"),
    }
    for (english, kind), forms in wanted.items():
        item = adjective(english, kind)
        assert item.comparative
        assert item.superlative
        words = [" ".join(degree.english) for degree in (item.comparative, item.superlative)]
        assert (*words, item.comparative.stem, item.superlative.stem) == forms


def test_stem_before_endings_may_differ() -> None:
    """teuer becomes teure, hoch becomes hohe, müde becomes müder."""
    assert adjective("expensive", "thing").positive.stem == "teur"
    assert adjective("high", "place").positive.stem == "hoh"
    assert adjective("tired", "person").positive.stem == "müd"
    assert adjective("tired", "person").positive.predicate == "müde"


def test_colors_have_no_degrees() -> None:
    """The grammar makes nothing redder than something else."""
    assert adjective("red", "thing").comparative is None
