"""Stage encode@SPLIT: filtered pairs -> memory-mapped ids."""

from pathlib import Path

from convs2s.base.files import read_folder
from convs2s.ids.encoded import write_encoded
from convs2s.ids.vocabulary import read_vocabulary
from convs2s.text.vocabulary.encoding import encode_pairs


def run(vocabulary: Path, pairs: Path, out: Path) -> None:
    """Read the codecs of vocabulary/ and pairs/{source,target}.txt; write out/SIDE.{ids,offsets}.npy."""
    sizes = (len(read_vocabulary(vocabulary / "source.tsv")), len(read_vocabulary(vocabulary / "target.tsv")))
    write_encoded(out, encode_pairs(read_folder(pairs), vocabulary), sizes)
