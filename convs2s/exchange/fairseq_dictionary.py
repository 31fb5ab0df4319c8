"""A fairseq dictionary -> our vocabulary of the same types, in the order that the imported weights have."""

from pathlib import Path

from convs2s.text.files import read_lines

START = "<s>"  # goes last, as in the weights
OVERWRITE = " #fairseq:overwrite"  # marks a type that is spelled as an earlier one, or as a mark


def read_dictionary_types(path: Path) -> list[tuple[str, int]]:
    """Return types and counts of a dictionary, the start mark last; ours of padding, end and unknown not.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not 'type count', or a type stands twice.
    """
    lines: dict[str, int] = {}
    types: list[tuple[str, int]] = []
    for number, line in enumerate(read_lines(path), start=1):
        type_, space, count = line.removesuffix(OVERWRITE).rstrip().rpartition(" ")
        if not (space and type_ and "\t" not in type_ and count.isascii() and count.isdigit()):
            raise ValueError(
                f"{path}, line {number}: found {line!r}, wanted 'type count', parted by one space, as in the "
                "dict files of fairseq."
            )
        if type_ in lines or type_ == START:
            earlier = f"in line {lines[type_]}" if type_ in lines else "for fairseq's start mark"
            raise ValueError(
                f"{path}, line {number}: the type {type_!r} stands {earlier} already; wanted each once, for "
                "a word has one id. Rename one of them to a word that no text has: the lines stay as many."
            )
        lines[type_] = number
        types.append((type_, int(count)))
    return [*types, (START, 0)]
