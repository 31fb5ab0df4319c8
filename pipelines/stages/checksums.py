"""Stage checksums: params.yaml and all code, as a run begins -> their MD5 hashes.

Stage snapshot compares them with what it reads a moment later.
"""

from pathlib import Path

from convs2s.config.load import read_text
from convs2s.text.corpus.files import write_lines
from pipelines.stages._code import checksums, read_project


def run(params: Path, library: Path, stages: Path, out: Path) -> None:
    """Write a line with hash and name for params.yaml and each Python file.

    Args:
        library: folder of the package `convs2s`.
        stages: folder of the package `pipelines.stages`.
    """
    write_lines(out, checksums(read_text(params), read_project([library, stages])))
