"""Small corpora for the tests of alignment."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from convs2s.text.alignment.word_ids import Corpus, Links, number_words, pack_links

LinkLists = Sequence[Sequence[tuple[int, int]]]


def number(folder: Path, pairs: Iterable[tuple[str, str]]) -> tuple[Corpus, list[list[str]]]:
    """Write and number a corpus; return it with each side's words."""
    sides = list(zip(*pairs, strict=True)) or [(), ()]
    for side, lines in zip("st", sides, strict=True):
        (folder / side).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return number_words(folder / "s", folder / "t", folder)


def pack(links: LinkLists) -> list[Links]:
    """Return the links of sentence pairs as an aligner yields them."""
    return list(pack_links(links))


def unpack(chunks: Iterable[Links]) -> list[list[tuple[int, int]]]:
    """Return the links of each sentence pair."""
    return [links for chunk in chunks for links in chunk.lists()]
