"""A fairseq dictionary -> our vocabulary of the same entries, in the order of the imported weights."""

from pathlib import Path

from convs2s.text.corpus.files import read_lines

START = "<s>"  # goes last, as in the weights
OVERWRITE = " #fairseq:overwrite"  # flags an entry spelled like an earlier one or a special symbol


def read_fairseq_dictionary(path: Path) -> list[tuple[str, int]]:
    """Return the entries of a dictionary with their counts, "<s>" last; without our three special symbols.

    If entries have the same spelling, text is looked up as the last of them, as in fairseq. The others keep
    their ids under a name with spaces, which no word has; they were never trained, so never generated.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not 'word count', or a word is repeated without fairseq's flag.
    """
    lines: dict[str, int] = {}
    entries: list[tuple[str, int]] = []
    start = START
    for number, line in enumerate(read_lines(path), start=1):
        word, count, overwrites = parsed(line, f"{path}, line {number}")
        if (word in lines or word == START) and not overwrites:
            raise repeated(path, number, word, lines.get(word))
        overwritten = f"<overwritten in line {number}>"
        if word in lines:
            entries[lines[word] - 1] = (overwritten, entries[lines[word] - 1][1])
        elif word == START:
            start = overwritten
        lines[word] = number
        entries.append((word, count))
    return [*entries, (start, 0)]


def parsed(line: str, origin: str) -> tuple[str, int, bool]:
    """Return the word, its count, and whether fairseq's flag follows them."""
    entry = line.rstrip()
    word, space, count = entry.removesuffix(OVERWRITE).rstrip().rpartition(" ")
    if not (space and word and "\t" not in word and count.isascii() and count.isdigit()):
        raise ValueError(f"{origin}: found {line!r}, wanted 'word count', as in fairseq's dict files.")
    return word, int(count), entry.endswith(OVERWRITE)


def repeated(path: Path, number: int, word: str, earlier: int | None) -> ValueError:
    """Return the error for a repeated word; `earlier` is None for fairseq's start symbol."""
    where = f"is already in line {earlier}" if earlier else "is already fairseq's start symbol"
    rename = f", or rename the word in line {earlier} to one that no text contains" if earlier else ""
    return ValueError(
        f"{path}, line {number}: the word {word!r} {where}, and{OVERWRITE} does not follow it here; wanted "
        "each word once, because it has one id. fairseq rejects this second line; its first versions "
        f"accepted it and gave the word this line's id. To keep the ids, append{OVERWRITE} to line "
        f"{number}{rename}. Do not add or remove lines."
    )
