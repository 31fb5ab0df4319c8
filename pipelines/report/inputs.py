"""What the page about a run is made from: if none of it has changed, the page need not be drawn again."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pipelines.report.run import FILES, LOCK, OF_SEED, find_origin

CODE = [Path(__file__).parent, Path(__file__).parents[2] / "convs2s"]


def digest_inputs(folder: Path) -> str:
    """Return a digest of a run: its files, date and commit, and the code that draws the page."""
    digest = hashlib.sha256(repr(find_origin(folder)).encode())
    for root, path in list_inputs(folder):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def list_inputs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a run and of the code, in a fixed order, each after the folder that it is below."""
    data = folder / "data"
    results = [folder / LOCK, *(data / name for name in FILES)]
    for pattern in OF_SEED:
        results += sorted(data.glob(pattern.format("*")))
    for result in results:
        for path in sorted(result.rglob("*")) if result.is_dir() else [result]:
            if path.is_file():
                yield folder, path
    for code in CODE:
        for path in sorted(code.rglob("*")):
            if path.suffix in {".py", ".html"}:
                yield code, path


def is_made_from(page: Path, digest: str) -> bool:
    """Return whether the page exists, and ends with the mark of this digest."""
    return page.is_file() and page.read_bytes().endswith(f"{mark(digest)}\n".encode())


def mark(digest: str) -> str:
    """Return the last line of a page that is made from inputs with this digest."""
    return f"<!-- made from {digest} -->"
