"""Romanian letters as Sennrich et al. (2016) prepare them for WMT'16 (T32)."""

# Older text has cedillas, which look alike, for want of the right letters in older fonts and encodings.
CEDILLA_TO_COMMA = str.maketrans("ŞşŢţ", "ȘșȚț")
PLAIN = str.maketrans("ȘșȚțĂăÂâÎî", "SsTtAaAaIi")


def comma_below(text: str) -> str:
    """Return the text with s and t with comma below where it had them with cedilla."""
    return text.translate(CEDILLA_TO_COMMA)


def without_diacritics(text: str) -> str:
    """Return the text with plain letters for those of Romanian, comma below or cedilla.

    For a Romanian source only: text without them is easier to get right, so a target without them scores
    some ten BLEU too high, and no reader wants it.
    """
    return comma_below(text).translate(PLAIN)
