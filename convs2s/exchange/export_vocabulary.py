"""What exported parts need besides weights: pieces by id, the segmentation, and an example decoder."""

import shutil
from pathlib import Path

from convs2s.model.description import read_description
from convs2s.model.digests import check_files
from convs2s.text.corpus.json_files import write_json
from convs2s.text.vocabulary.vocabulary import SPECIALS, read_vocabulary

SIDES = ("source", "target")
PREPARATION = ("tokenizer.json", "segmentation.json", "source.model", "target.model", "truecaser.tsv")
EXAMPLE = "translate.py"


def write_vocabularies(folder: Path, out: Path) -> None:
    """Write SIDE_vocabulary.json, a list in which each entry's index is its id, and the example decoder.

    The files that define tokenization and segmentation are copied. For a folder with only weights, as
    written by the stage train, nothing is written.

    Raises:
        FileNotFoundError: if one vocabulary is missing.
        ValueError: if a file is damaged.
    """
    if not any((folder / f"{side}.tsv").is_file() for side in SIDES):
        return
    names = [name for name in PREPARATION if (folder / name).is_file()]
    check_files(folder, read_description(folder).files, [*names, *(f"{side}.tsv" for side in SIDES)])
    for side in SIDES:
        entries = read_vocabulary(folder / f"{side}.tsv").entries
        write_json(out / f"{side}_vocabulary.json", [*SPECIALS, *entries])
    for name in names:
        shutil.copyfile(folder / name, out / name)
    shutil.copyfile(Path(__file__).with_name("onnx_example.py"), out / EXAMPLE)
