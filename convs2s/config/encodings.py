"""How to convert text that is not UTF-8, for error messages."""

import codecs

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def conversion(start: bytes) -> str:
    """Return a command that converts text that starts with these bytes to UTF-8."""
    # Only UTF-16 can be recognized, by its byte order mark; Latin-1 is the most likely of the others.
    return f"iconv -f {'utf-16' if start.startswith(UTF16_MARKS) else 'latin1'} -t utf-8"
