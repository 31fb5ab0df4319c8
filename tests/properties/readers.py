"""All readers of files that a user, a disk or a server may damage: how to call each, and a good file."""

import argparse
import bz2
import collections
import gzip
import lzma
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from convs2s.base.files import read_folder, read_lines, zstd
from convs2s.config.load import load_params
from convs2s.fairseq.files import read_fairseq_checkpoint, read_fairseq_dictionary
from convs2s.ids.candidates import Candidates, read_candidates, write_candidates
from convs2s.ids.encoded import EncodedCorpus, EncodedSentences, write_encoded
from convs2s.ids.vocabulary import EOS, read_vocabulary
from convs2s.model.description import seal
from convs2s.model.storage import load_model
from convs2s.package.folder import read_settings
from convs2s.text.alignment.dictionary import read_dictionary
from convs2s.text.sources.memory import read_memory
from convs2s.text.sources.pair_files import read_tsv
from convs2s.text.sources.remote import unpack
from convs2s.text.sources.tagged_text import read_segments, read_tagged_pairs
from convs2s.text.vocabulary.codec import read_kind
from convs2s.text.vocabulary.segmentation import Bpe, read_model
from convs2s.text.vocabulary.subword_nmt import read_codes
from tests.package.small_package import write_small_package
from tests.presets import rendered
from tests.web import make_archive

LINES = "Ein Haus .\nDas ist ein  Hund\r\n\n„Größe“ \u2028 x\tmehr\n".encode()
TALKS = b"<url>http://x</url>\n<title>A talk</title>\nGood.\n<reviewer>n</reviewer>\nBye &amp; thanks.\n"
SGM = b'<doc docid="d">\n<seg id="1">Good &amp; <b>bad</b></seg>\n<seg id="2">&#233;t\xc3\xa9</seg></doc>\n'
DICTIONARY = b"source\ttarget\tcount\tlinks\ndog\tHund\t3\t4\nhouse\tHaus\t1\t1\n"
MEMORY = b"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd" [<!ENTITY a "b">]>
<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="en"><seg>A <ph>x</ph>&a;</seg></tuv><tuv xml:lang="de"><seg>B&#233;</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>A</seg></tuv></tu></body></tmx>
"""
XLIFF = b"""<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>A <x id="1" equiv-text="n"/></source><target state="final">B</target></trans-unit>
<trans-unit id="2"><source>A</source><target state="new">A</target></trans-unit>
<trans-unit id="3"><source>A B</source><seg-source><mrk mtype="seg" mid="1">A</mrk>
<mrk mtype="seg" mid="2">B</mrk>
</seg-source><target><mrk mtype="seg" mid="2">B</mrk></target></trans-unit></body></file></xliff>
"""
TSV = b"a b\tc d\t1\ne\tf\n"
LANGUAGES = ("en", "de")


class Reader(NamedTuple):
    """A way to read a whole file of this name, and to write a good one with all that its folder needs."""

    name: str
    read: Callable[[Path], Any]
    prepare: Callable[[Path], Any]


def bytes_of(content: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content)


def exhausted(read: Callable[[Path], Iterator[Any]]) -> Callable[[Path], Any]:
    return lambda path: collections.deque(read(path), maxlen=0)


def archive(path: Path) -> None:
    path.write_bytes(make_archive(path.name, {"a/one.txt": LINES, "two.txt": LINES}))


def unpacked(path: Path) -> None:
    unpack(path, path.parent / "unpacked")


def checkpoint(path: Path) -> None:
    arguments = argparse.Namespace(arch="fconv", encoder_layers="[(8, 3)]", source_lang="en")
    torch.save({"args": arguments, "model": {"a": torch.ones(2)}, "extra": [1, "x", None]}, path)


def encoded(path: Path) -> None:
    side = EncodedSentences(np.array([5, 6, EOS, EOS, 7, EOS]), np.array([3, 1, 2]))
    write_encoded(path.parent, [[side, side]], (10, 10))


def package(path: Path) -> None:
    """Write a model folder, which has the file."""
    folder = write_small_package(path.parent.with_name("parts"))
    shutil.copytree(folder, path.parent, dirs_exist_ok=True)


def read_weights(path: Path) -> None:
    """Read a model whose digests are those of its files, however damaged."""
    seal(path.parent)
    load_model(path.parent)


def beside(name: str, content: bytes) -> Callable[[Path], None]:
    """Return a function that writes a file, and the same content next to it under another name."""

    def prepare(path: Path) -> None:
        path.write_bytes(content)
        (path.parent / name).write_bytes(content)

    return prepare


READERS = [
    Reader("text.txt", exhausted(read_lines), bytes_of(LINES)),
    Reader("text.gz", exhausted(read_lines), bytes_of(gzip.compress(LINES, mtime=0))),
    Reader("text.bz2", exhausted(read_lines), bytes_of(bz2.compress(LINES) + bz2.compress(LINES))),
    Reader("text.xz", exhausted(read_lines), bytes_of(lzma.compress(LINES) + lzma.compress(LINES))),
    Reader("text.zst", exhausted(read_lines), bytes_of(zstd.compress(LINES))),
    *(
        Reader(name, exhausted(partial(read_memory, languages=LANGUAGES)), bytes_of(content))
        for name, content in (
            ("memory.tmx", MEMORY),
            ("memory.xlf", XLIFF),
            ("memory.gz", gzip.compress(MEMORY, mtime=0)),
            ("memory.bz2", bz2.compress(MEMORY)),
            ("memory.xz", lzma.compress(MEMORY)),
            ("memory.zst", zstd.compress(MEMORY)),
        )
    ),
    Reader("source.txt", exhausted(lambda path: read_folder(path.parent)), beside("target.txt", LINES)),
    Reader("pairs.tsv", exhausted(partial(read_tsv, columns=(0, 1), languages=LANGUAGES)), bytes_of(TSV)),
    Reader("test.sgm", read_segments, bytes_of(SGM)),
    Reader(
        "train.tags.en",
        exhausted(lambda path: read_tagged_pairs(path, path.with_name("train.tags.de"))),
        beside("train.tags.de", TALKS),
    ),
    Reader("corpus.tar", unpacked, archive),
    Reader("corpus.zip", unpacked, archive),
    Reader("source.tsv", read_vocabulary, bytes_of("Haus\t3\nist\t2\n\u2581\t0\n".encode())),
    Reader("dictionary.tsv", read_dictionary, bytes_of(DICTIONARY)),
    Reader("bpe.codes", read_codes, bytes_of(b"#version: 0.2\nH a\nHa us</w>\n")),
    Reader("segmentation.json", read_kind, bytes_of(b'{"kind": "bpe", "joint": true}\n')),
    Reader("source.model", partial(read_model, kind=Bpe), package),
    Reader(
        "candidates.npz",
        read_candidates,
        lambda path: write_candidates(path, Candidates(np.arange(21), np.full(20, 7, np.int32))),
    ),
    Reader("source.ids.npy", lambda path: EncodedCorpus.open(path.parent, "source"), encoded),
    Reader("source.offsets.npy", lambda path: EncodedCorpus.open(path.parent, "source"), encoded),
    Reader("model.json", lambda path: load_model(path.parent), package),
    Reader("weights.safetensors", read_weights, package),
    Reader("tokenizer.json", lambda path: read_settings(path.parent), package),
    Reader("translate.json", lambda path: read_settings(path.parent), package),
    Reader("dict.en.txt", read_fairseq_dictionary, bytes_of(b"the 12\n, 7\nmadeupword0000 0\n")),
    Reader("checkpoint.pt", read_fairseq_checkpoint, checkpoint),
    Reader(
        "params.yaml", load_params, lambda path: path.write_text(rendered("tatoeba-en-de"), encoding="utf-8")
    ),
]
