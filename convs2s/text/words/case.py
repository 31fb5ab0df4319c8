"""Lowercase and capital letters: Turkish has two letters i, and Georgian no capitals in sentences."""

DOTTED_AND_DOTLESS = ("az", "crh", "tr")
"""ISO 639 codes of languages in which i and ı are two letters, with the capitals İ and I."""
SMALL_I, CAPITAL_I = str.maketrans("İI", "iı"), str.maketrans("iı", "İI")


def lower(text: str, language: str) -> str:
    """Return a text in lowercase."""
    return (text.translate(SMALL_I) if language in DOTTED_AND_DOTLESS else text).lower()


def capitalized(word: str, language: str) -> str:
    """Return a word as at the start of a sentence; letters after the first are unchanged."""
    first = word[:1].translate(CAPITAL_I) if language in DOTTED_AND_DOTLESS else word[:1]
    return first.title() + word[1:]  # upper() would give Georgian letters used only in headlines
