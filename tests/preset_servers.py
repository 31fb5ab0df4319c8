"""Local stand-ins for the servers of the paper's corpora: small files with the same names and formats.

The layouts are the publishers', written independently of the presets, so that a wrong name in a preset is
found. The text is English and German, whatever the language codes say.
"""

import gzip
import hashlib
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any
from xml.sax.saxutils import escape

from convs2s.text.words.tokenization import Tokenizer
from tests.corpus import pairs
from tests.decode.parrot import TOKENIZE
from tests.web import Site, make_archive

PAIRS = 60  # in each corpus; test sets have half as many
Side = Callable[[str, str], str]  # makes a line of a file from a pair's English and German


def english(source: str, _: str) -> str:
    return source


def newswire(source: str, _: str) -> str:
    """Add characters that SGML writes as entities."""
    return f"{source} AT&T < R&D."


def german(_: str, target: str) -> str:
    return target


def romanian(_: str, target: str) -> str:
    """Add a hyphen, and letters with a cedilla as in older text."""
    return target.removesuffix(".") + " şi într-o ţară."


STANFORD_CHANGES = {"aggressive_hyphens": True, "escape": True, "at_sign": "##AT##"}
STANFORD = Tokenizer("en", TOKENIZE.model_copy(update=STANFORD_CHANGES))


def stanford_english(source: str, _: str) -> str:
    """Tokenize, with hyphens as ##AT##-##AT##."""
    return " ".join(STANFORD.tokenize(f"{source} A well-known man's &."))


def stanford_german(_: str, target: str) -> str:
    return " ".join(STANFORD.tokenize(f"{target} Der US-Amerikaner."))


def plain(lines: list[str], _: str) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def packed(lines: list[str], corpus: str) -> bytes:
    return gzip.compress(plain(lines, corpus), mtime=0)


def segments(lines: list[str], corpus: str) -> bytes:
    """Return a WMT test set: two documents, with entities."""
    half = len(lines) // 2
    marks = []
    for name, part in ((f"{corpus}.1", lines[:half]), (f"{corpus}.2", lines[half:])):
        marks.append(f'<doc sysid="src" docid="{name}" genre="news" origlang="en">\n<p>')
        marks += [f'<seg id="{i}">{escape(line)}</seg>' for i, line in enumerate(part, start=1)]
        marks.append("</p>\n</doc>")
    return ('<srcset setid="newstest" srclang="any">\n' + "\n".join(marks) + "\n</srcset>\n").encode()


def talks(lines: list[str], corpus: str) -> bytes:
    """Return an IWSLT test set: a talk with a header, and spaces around the text."""
    marks = [f'<seg id="{i}"> {escape(line)} </seg>' for i, line in enumerate(lines, start=1)]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<srcset setid="iwslt" srclang="german">\n'
    talk = (
        f'<doc docid="{corpus}" genre="lectures">\n<url>http://www.ted.com/x</url>\n<title>A title</title>\n'
    )
    return (head + talk + "\n".join(marks) + "\n</doc>\n</srcset>\n</mteval>\n").encode()


def tagged(lines: list[str], corpus: str) -> bytes:
    """Return training text in the format of WIT3."""
    head = ["<url>http://www.ted.com/x</url>", "<keywords>talks</keywords>", "<talkid>1</talkid>"]
    title = f"<title>{lines[0]}</title>"
    return plain([*head, title, f"<description>{lines[1]}</description>", *lines[2:]], corpus)


def both(stem: str, source: Side, target: Side, languages: str, form: Any = plain, end: str = "") -> Any:
    """Return the two files of a corpus, named after a stem and the languages."""
    first, second = languages.split("-")
    return {f"{stem}.{first}{end}": (source, form), f"{stem}.{second}{end}": (target, form)}


def parallel(stem: str, *pairs: str) -> Any:
    """Return a corpus in several language pairs, like Europarl; a preset reads only the pair it needs."""
    files: dict[str, Any] = {}
    for pair in pairs:
        other, _ = pair.split("-")
        files |= {f"{stem}.{pair}.{other}": (german, plain), f"{stem}.{pair}.en": (english, plain)}
    return files


def newstest(folder: str, name: str, source: str, target: str) -> Any:
    """Return the two files of a WMT test set; the same text serves both directions."""
    german_side = romanian if target == "ro" else german
    return {
        f"{folder}/{name}-src.{source}.sgm": (newswire, segments),
        f"{folder}/{name}-ref.{target}.sgm": (german_side, segments),
    }


IWSLT_TESTS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
IWSLT: dict[str, Any] = both("de-en/train.tags.de-en", german, english, "de-en", tagged)
for _name in IWSLT_TESTS:
    IWSLT |= both(f"de-en/IWSLT14.{_name}.de-en", german, english, "de-en", talks, ".xml")
MULTI30K = (
    "raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
)
STANFORD_SITE = "nlp.stanford.edu/projects/nmt/data/wmt14.en-de"
BACK = "data.statmt.org/rsennrich/wmt16_backtranslations/en-ro/corpus.bt.en-ro"

# The members of each archive; FILES below has the files that are not archives.
ARCHIVES: dict[str, dict[str, Any]] = {
    "www.statmt.org/wmt13/training-parallel-europarl-v7.tgz": parallel(
        "training/europarl-v7", "de-en", "fr-en", "cs-en"
    ),
    "www.statmt.org/wmt13/training-parallel-commoncrawl.tgz": parallel("commoncrawl", "de-en", "fr-en"),
    "www.statmt.org/wmt14/training-parallel-nc-v9.tgz": parallel(
        "training/news-commentary-v9", "de-en", "fr-en"
    ),
    "www.statmt.org/wmt13/training-parallel-un.tgz": parallel("un/undoc.2000", "fr-en", "es-en"),
    "www.statmt.org/wmt10/training-giga-fren.tar": both(
        "giga-fren.release2.fixed", english, german, "en-fr", packed, ".gz"
    ),
    "www.statmt.org/wmt14/test-full.tgz": {
        **newstest("test-full", "newstest2014-deen", "en", "de"),
        **newstest("test-full", "newstest2014-fren", "en", "fr"),
    },
    "data.statmt.org/wmt16/translation-task/training-parallel-ep-v8.tgz": both(
        "training-parallel-ep-v8/europarl-v8.ro-en", english, romanian, "en-ro"
    ),
    "data.statmt.org/wmt16/translation-task/test.tgz": newstest("test", "newstest2016-enro", "en", "ro"),
    "object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip": {
        **both("SETIMES.en-ro", english, romanian, "en-ro"),
        "README": (english, plain),
    },
    "dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz": IWSLT,
}
FILES: dict[str, Any] = both(BACK, english, romanian, "en-ro", packed, ".gz")
for _name in ("train", "newstest2014", "newstest2015"):
    FILES |= both(f"{STANFORD_SITE}/{_name}", stanford_english, stanford_german, "en-de")
for _name in ("train", "val", "test_2016_flickr"):
    for _pair in ("en-de", "en-fr"):
        FILES |= both(f"{MULTI30K}/{_name}", english, german, _pair, packed, ".gz")


def content(name: str, side: Side, form: Callable[[list[str], str], bytes]) -> bytes:
    """Return a file's bytes; the two sides of a corpus have the same pairs, which differ between corpora."""
    corpus = re.sub(r"[.-](en|de|fr|ro|src|ref)\b", "", PurePosixPath(name).name)
    is_test = any(word in name for word in ("newstest", "test_2016", ".xml"))
    some = pairs(PAIRS // 2 if is_test else PAIRS, start=sum(corpus.encode()) % 1000)
    return form([side(*pair) for pair in some], corpus)


def make_all() -> dict[str, bytes]:
    """Return all files of the servers, by host and path."""
    served = {name: content(name, *how) for name, how in FILES.items()}
    for name, members in ARCHIVES.items():
        served[name] = make_archive(name, {member: content(member, *how) for member, how in members.items()})
    return served


def redirect(source: dict[str, Any], site: Site) -> dict[str, Any]:
    """Return a source of params.yaml with our address and checksums; null checksums stay null."""
    fetch = []
    for file in source["fetch"]:
        names = [url.split("://")[1] for url in file["urls"]]
        data = site.files.get(names[0], b"")
        checksum = file["checksum"]
        digests = {64: hashlib.sha256(data).hexdigest(), 32: hashlib.md5(data).hexdigest()}
        urls = [site.url(name) for name in names]
        fetch.append({"urls": urls, "checksum": checksum and digests[len(checksum)]})
    return source | {"fetch": fetch}
