"""Romanian letters as preprocessed by Sennrich et al. (2016) for WMT'16 (T32)."""

# Older text has look-alike cedillas, because older fonts and encodings lacked the right letters.
CEDILLA_TO_COMMA = str.maketrans("ŞşŢţ", "ȘșȚț")
PLAIN = str.maketrans("ȘșȚțĂăÂâÎî", "SsTtAaAaIi")


def comma_below(text: str) -> str:
    """Return the text with s and t with cedilla replaced by s and t with comma below."""
    return text.translate(CEDILLA_TO_COMMA)


def without_diacritics(text: str) -> str:
    """Return the text with plain letters instead of the Romanian ones, with comma below or cedilla.

    Only for a Romanian source: a target without diacritics is easier to get right, so BLEU would be about ten
    points too high, and no reader wants such text.
    """
    return comma_below(text).translate(PLAIN)
