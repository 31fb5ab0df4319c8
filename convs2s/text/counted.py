"""Numbers with their nouns, for messages."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: 1 line, 2,000 lines."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
