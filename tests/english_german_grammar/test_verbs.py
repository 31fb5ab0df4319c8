import pytest

from convs2s.english_german_grammar.verb_list import ALL_VERBS, BE
from convs2s.english_german_grammar.verbs import parse_verb
from tests.english_german_grammar.lookup import verb


@pytest.mark.parametrize(
    ("base", "frame", "present"),
    [
        ("see", "T", "sehe siehst sieht sehen seht sehen sehen"),
        ("read", "T", "lese liest liest lesen lest lesen lesen"),
        ("hold", "T", "halte hältst hält halten haltet halten halten"),
        ("invite", "T", "lade lädst lädt laden ladet laden laden"),
        ("open", "T", "öffne öffnest öffnet öffnen öffnet öffnen öffnen"),
        ("draw", "T", "zeichne zeichnest zeichnet zeichnen zeichnet zeichnen zeichnen"),
        ("collect", "T", "sammle sammelst sammelt sammeln sammelt sammeln sammeln"),
        ("change", "T", "ändere änderst ändert ändern ändert ändern ändern"),
        ("know", "S", "weiß weißt weiß wissen wisst wissen wissen"),
        ("have", "T", "habe hast hat haben habt haben haben"),
        ("sit", "L", "sitze sitzt sitzt sitzen sitzt sitzen sitzen"),
        ("learn", "", "lerne lernst lernt lernen lernt lernen lernen"),
    ],
)
def test_german_present(base: str, frame: str, present: str) -> None:
    """Forms are those of any German grammar, for ich, du, er, wir, ihr, sie and Sie."""
    item = verb(base, frame) if frame else parse_verb("learn T person>idea lernen")
    assert " ".join(item.present) == present


def test_german_preterite() -> None:
    """Strong verbs have no ending after ich and er; weak verbs end in -te."""
    assert verb("see", "T").preterite[:5] == ("sah", "sahst", "sah", "sahen", "saht")
    assert verb("work", "I").preterite[:5] == (
        "arbeitete",
        "arbeitetest",
        "arbeitete",
        "arbeiteten",
        "arbeitetet",
    )
    assert verb("find", "T").preterite[1] == "fandest"
    assert BE.present[:5] == ("bin", "bist", "ist", "sind", "seid")


def test_german_participles() -> None:
    """The ge- follows a separable prefix; it is dropped after inseparable ones and in -ieren verbs."""
    wanted = {
        ("call", "T"): "angerufen", ("turn", "T"): "eingeschaltet", ("visit", "T"): "besucht",
        ("repair", "T"): "repariert", ("prepare", "T"): "vorbereitet", ("work", "I"): "gearbeitet",
    }  # fmt: skip
    assert {key: verb(*key).participle for key in wanted} == wanted


def test_english_forms() -> None:
    """Cases are doubled consonants, -ies, silent e and irregular verbs."""
    forms = {item.base: (item.third, item.past, item.gerund) for item in ALL_VERBS}
    assert forms["plan"] == ("plans", "planned", "planning")
    assert forms["carry"] == ("carries", "carried", "carrying")
    assert forms["dance"] == ("dances", "danced", "dancing")
    assert forms["watch"] == ("watches", "watched", "watching")
    assert forms["write"] == ("writes", "wrote", "writing")
    assert forms["begin"] == ("begins", "began", "beginning")
    assert forms["visit"] == ("visits", "visited", "visiting")
    assert forms["have"] == ("has", "had", "having")


def test_preposition_belongs_to_the_object_not_to_the_verb() -> None:
    """The verb is "look forward", and "to the party" is its object."""
    item = parse_verb("look_forward_to P=to:auf:A person>event freuen +r")
    assert (item.particle, item.english_preposition, item.german_preposition) == (("forward",), "to", "auf")
    assert item.reflexive
    assert not item.preposition_dative
