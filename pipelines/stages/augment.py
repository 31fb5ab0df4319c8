"""Stage augment: target text translated back, or the training source translated -> more training pairs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from convs2s.base.files import read_lines, write_folder


def run(
    models: Annotated[list[str], "augment.models"],
    text: Annotated[list[str], "augment.text"],
    raw: Path,
    out: Path,
) -> None:
    """Write out/{source,target}.txt, empty without models.

    Args:
        text: files of target sentences, which the models translate to the source; if there are none, they
            translate raw/source.txt to the target.

    Raises:
        ValueError: if there is nothing to translate, or a line is not UTF-8; before anything is translated.
    """
    if not models:
        write_folder(out, [])
        return
    # These imports take seconds.
    import torch  # noqa: PLC0415

    from convs2s.base.parallel import cores  # noqa: PLC0415
    from convs2s.package.augmentation import has_text, translate_lines  # noqa: PLC0415
    from convs2s.package.translator import load  # noqa: PLC0415

    files = [Path(name) for name in text] or [raw / "source.txt"]

    def lines() -> Iterator[str]:
        return (line for path in files for line in read_lines(path))

    total = sum(map(has_text, lines()))  # reads all of it: a fault at its end is an error now, not in hours
    if total == 0:
        raise ValueError(f"{', '.join(map(str, files))}: expected sentences to translate, found none.")
    translator = load(models, processes=1 if torch.cuda.is_available() else cores())
    pairs = translate_lines(translator, lines(), total)
    write_folder(out, ((found, given) for given, found in pairs) if text else pairs)
