"""A fairseq dictionary -> our vocabulary of the same types, in the order that the imported weights have."""

from pathlib import Path

from convs2s.text.corpus.files import read_lines

START = "<s>"  # goes last, as in the weights
OVERWRITE = " #fairseq:overwrite"  # marks a type that is spelled as an earlier one, or as a mark


def read_dictionary_types(path: Path) -> list[tuple[str, int]]:
    """Return types and counts of a dictionary, the start mark last; ours of padding, end and unknown not.

    Of types that are spelled alike, the text has the last, as in fairseq. The others keep their ids under a
    name with spaces, which no word has; training never saw them, so they are not written either.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not 'type count', or a type stands twice, the later one without fairseq's
            flag.
    """
    lines: dict[str, int] = {}
    types: list[tuple[str, int]] = []
    start = START
    for number, line in enumerate(read_lines(path), start=1):
        type_, count, overwrites = parsed(line, f"{path}, line {number}")
        if (type_ in lines or type_ == START) and not overwrites:
            raise repeated(path, number, type_, lines.get(type_))
        overwritten = f"<overwritten in line {number}>"
        if type_ in lines:
            types[lines[type_] - 1] = (overwritten, types[lines[type_] - 1][1])
        elif type_ == START:
            start = overwritten
        lines[type_] = number
        types.append((type_, count))
    return [*types, (start, 0)]


def parsed(line: str, place: str) -> tuple[str, int, bool]:
    """Return type, count, and whether fairseq's flag stands behind them."""
    entry = line.rstrip()
    type_, space, count = entry.removesuffix(OVERWRITE).rstrip().rpartition(" ")
    if not (space and type_ and "\t" not in type_ and count.isascii() and count.isdigit()):
        raise ValueError(
            f"{place}: found {line!r}, wanted 'type count', parted by one space, as in the dict files of "
            "fairseq."
        )
    return type_, int(count), entry.endswith(OVERWRITE)


def repeated(path: Path, number: int, type_: str, earlier: int | None) -> ValueError:
    """Return the error about a type that stands twice; `earlier` is None for the start mark."""
    where = f"in line {earlier}" if earlier else "for fairseq's start mark"
    rename = f", or rename line {earlier}'s, the earlier one, to a word that no text has" if earlier else ""
    return ValueError(
        f"{path}, line {number}: the type {type_!r} stands {where} already, and{OVERWRITE} does not stand "
        "behind this one; wanted each once, for a word has one id. This later line is the one that fairseq "
        "refuses; its first versions did not, and gave the word the later line's id. For the same ids, append"
        f"{OVERWRITE} to line {number}{rename}. The lines must stay as many."
    )
