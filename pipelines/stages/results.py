"""Stage results: the paper's rows and the recorded results -> the page that shows them side by side."""

import sys
from pathlib import Path

from convs2s.text.corpus.files import write_lines
from pipelines.results.page import page
from pipelines.results.paper import read_paper
from pipelines.results.records import read_records


def run(results: Path, out: Path) -> None:
    """Read paper.yaml and all records in `results`; write the page `out`, in Markdown.

    Raises:
        ValueError: if a file is not valid, with its name and key.
    """
    paper = read_paper(results / "paper.yaml")
    write_lines(out, page(paper, read_records(results, paper)).removesuffix("\n").split("\n"))


if __name__ == "__main__":
    run(*map(Path, sys.argv[1:]))
