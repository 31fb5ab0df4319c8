"""Romanian letters as Sennrich et al. (2016) prepare them for WMT'16 (T32)."""

# Older text has look-alike cedillas, since older fonts and encodings lacked the right letters.
CEDILLA_TO_COMMA = str.maketrans("ŞşŢţ", "ȘșȚț")
PLAIN = str.maketrans("ȘșȚțĂăÂâÎî", "SsTtAaAaIi")


def comma_below(text: str) -> str:
    """Return the text with s and t with cedilla replaced by s and t with comma below."""
    return text.translate(CEDILLA_TO_COMMA)


def without_diacritics(text: str) -> str:
    """Return the text with plain letters in place of the Romanian ones, comma below or cedilla.

    For a Romanian source only: a target without diacritics is easier to get right, so it scores some ten
    BLEU too high, and no reader wants it.
    """
    return comma_below(text).translate(PLAIN)
