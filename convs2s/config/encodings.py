"""Text that is not UTF-8: how to convert it, for messages."""

import codecs

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def conversion(start: bytes) -> str:
    """Return a command that converts a text that starts with these bytes to UTF-8."""
    # Latin-1 is a guess, the most frequent of the others; only UTF-16 gives itself away.
    return f"iconv -f {'utf-16' if start.startswith(UTF16_MARKS) else 'latin1'} -t utf-8"
