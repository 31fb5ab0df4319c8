"""The folder for people's own texts, data/own, which git does not keep: what DVC tracks cannot be in git."""

from pathlib import Path

from convs2s.base.files import write_lines

FOLDER = Path("data/own")
README = """\
# Your own texts

Put the files here that params.yaml names under `download`, or let `download.folder` name another folder.

- Text is UTF-8, one sentence per line; line i of the source translates line i of the target. A table with
  tabs, a translation memory (.tmx, .xliff) and compressed files will do as well. From a document: save it as
  plain text.
- Three parts, none of which has sentences of another: training, validation (1,000 pairs or so) and test.
  Without validation pairs, `filter.valid_every` takes some of the training pairs.
- `make repro` then trains. The stage filter and the page data/report.html say what looks wrong in the texts.

All about it: docs/own-data.md. Git ignores this folder. To share it: dvc add data/own
"""


def make_own_folder(root: Path, folder: str) -> None:
    """Make data/own with a page on what belongs there, if it is the folder of texts and does not exist.

    Nothing is added to a folder that is there, because DVC would take the texts for changed, or to one whose
    texts DVC has elsewhere.
    """
    path = root / FOLDER
    if Path(folder) == FOLDER and not path.exists() and not path.with_name("own.dvc").exists():
        path.mkdir(parents=True)
        write_lines(path / "README.md", README.rstrip("\n").split("\n"))
