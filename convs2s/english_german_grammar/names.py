"""Names of people and places: a few real ones, and an open class made of syllables, copied unchanged."""

from convs2s.english_german_grammar.drawing import Bits, below, chance, draw, listed, zipf
from convs2s.english_german_grammar.phrases import Phrase

FIRST_NAMES = listed(
    "Anna Peter Maria Paul Laura Michael Julia David Sarah Martin Emma Daniel Lena Robert Clara Simon "
    "Eva Adam Nina Oliver Helen Oscar Ida Anton Laila Frank Greta Hugo Olga Karl Rosa Emil Vera Ivan "
    "Mona Leo Carla Omar Linda Victor Petra Roman Alma Bruno Wilma Gustav Frieda Edgar Selma Arthur "
    "Tilda Konrad Amina Pablo Yara Kofi Mei Ravi Dina Tariq"
)
TOWNS = listed(
    "Berlin/ London/ Paris/ Munich/München Vienna/Wien Hamburg/ Rome/Rom Cologne/Köln Madrid/ "
    "Zurich/Zürich Boston/ Prague/Prag Frankfurt/ Warsaw/Warschau Athens/Athen Lisbon/Lissabon "
    "Geneva/Genf Leipzig/ Milan/Mailand Moscow/Moskau Nuremberg/Nürnberg Venice/Venedig "
    "Brussels/Brüssel Copenhagen/Kopenhagen Dublin/ Chicago/ Tokyo/Tokio Beijing/Peking Cairo/Kairo "
    "Florence/Florenz Naples/Neapel Bremen/ Salzburg/ Oslo/ Hanover/Hannover Lucerne/Luzern "
    "Strasbourg/Straßburg Krakow/Krakau Bucharest/Bukarest Turin/ Antwerp/Antwerpen "
    "Germany/Deutschland France/Frankreich Italy/Italien Spain/Spanien Austria/Österreich "
    "Poland/Polen Sweden/Schweden Norway/Norwegen Greece/Griechenland Hungary/Ungarn Denmark/Dänemark "
    "Japan/ Canada/Kanada Ireland/Irland Scotland/Schottland Russia/Russland Brazil/Brasilien "
    "Egypt/Ägypten Mexico/Mexiko India/Indien"
)
ONSETS = listed("B Br D Dr F Fl G Gr H K Kl L M N R S St T Tr V W Kr Bl Z")
RHYMES = listed("al ar an el en er il in ir ol or on am em arn eld olt ern ind")
MIDDLES = ("", "a", "i", "o", "en", "er", "el")
SURNAME_ENDS = listed("man berg sen ström dal ski ova ius ard ett ander well ton mark feld ovic")
TOWN_ENDS = listed("burg ville stad by ton mere heim wick ford dorf haven au ingen grad")

FIRST = zipf(FIRST_NAMES)
PLACES = zipf(TOWNS)


def invented(bits: Bits, ends: list[str]) -> str:
    """Draw one of some 50,000 names with these endings, nearly all equally frequent."""
    return (
        ONSETS[below(bits, len(ONSETS))]
        + RHYMES[below(bits, len(RHYMES))]
        + MIDDLES[below(bits, len(MIDDLES))]
        + ends[below(bits, len(ends))]
    )


def person(bits: Bits) -> Phrase:
    """Draw a first name, a surname, or both; the same in both languages."""
    kind = bits(4)
    if kind < 10:
        name = draw(bits, FIRST)
        return Phrase((name,), (name,), ((0, 0),))
    surname = invented(bits, SURNAME_ENDS)
    if kind < 13:
        return Phrase((surname,), (surname,), ((0, 0),))
    if kind == 13:
        return Phrase(("Mr.", surname), ("Herr", surname), ((0, 0), (1, 1)))
    if kind == 14:
        return Phrase(("Mrs.", surname), ("Frau", surname), ((0, 0), (1, 1)))
    both = (draw(bits, FIRST), surname)
    return Phrase(both, both, ((0, 0), (1, 1)))


def town(bits: Bits) -> Phrase:
    """Draw a town or country; real ones may have a different German name."""
    if chance(bits, 35):
        name = invented(bits, TOWN_ENDS)
        return Phrase((name,), (name,), ((0, 0),))
    english, _, german = draw(bits, PLACES).partition("/")
    return Phrase((english,), (german or english,), ((0, 0),))
