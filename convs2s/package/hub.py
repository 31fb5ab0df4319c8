"""Model folders on the Hugging Face Hub, through its own library, which the extra `hub` installs."""

import re
from pathlib import Path
from typing import Any

from convs2s.model.description import CARD, WEIGHTS, check_files, read_description
from convs2s.package.folder import check_whole

PREFIX = "hf:"
NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[^@\s]+))?")
SEED_ROW = re.compile(r"^\| seed \| \d+ \|$", re.MULTILINE)


def locate(folder: str | Path) -> Path:
    """Return a model folder, fetching hf:OWNER/NAME or hf:OWNER/NAME@REVISION from the Hub.

    Folders fetched before come from the Hub's cache.

    Raises:
        OSError: if there is no such repository, or no network and no copy in the cache.
        ValueError: if the name is malformed, or huggingface_hub is not installed.
    """
    name = str(folder)
    if not name.startswith(PREFIX):
        return Path(folder)
    found = NAME.fullmatch(name.removeprefix(PREFIX))
    if found is None:
        raise ValueError(f"expected hf:OWNER/NAME or hf:OWNER/NAME@REVISION, found {name!r}.")
    return Path(import_library().snapshot_download(found["repository"], revision=found["revision"]))


def upload(folder: Path, repository: str, commit: str | None, private: bool) -> str:
    """Upload a model folder to OWNER/NAME on the Hub, creating it if needed; return its address.

    Args:
        folder: written by the stage package; it is checked first, and not changed.
        repository: OWNER/NAME.
        commit: commit of the code that made the model, for the uploaded model card; None to leave it out.
        private: whether a new repository is private.

    Raises:
        OSError: as `check_whole`, or if the Hub refuses.
        ValueError: as `check_whole`, or if huggingface_hub is not installed.
    """
    check_whole(folder)
    check_files(folder, read_description(folder).files, [WEIGHTS])
    hub = import_library()
    api = hub.HfApi()
    address = api.create_repo(repository, private=private, exist_ok=True)
    card = add_commit((folder / CARD).read_text(encoding="utf-8"), commit)
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != CARD)
    operations = [hub.CommitOperationAdd(path.name, str(path)) for path in files]
    operations.append(hub.CommitOperationAdd(CARD, card.encode("utf-8")))
    api.create_commit(repository, operations, commit_message="Upload a convs2s model")
    return str(address)


def add_commit(card: str, commit: str | None) -> str:
    """Return a model card that names a commit below the seed; cards without a seed are unchanged.

    The stage package does not write the commit: the same model would get a new card after each commit.
    """
    row = f"| commit of the code | `{commit}` |"
    return card if commit is None else SEED_ROW.sub(rf"\g<0>\n{row}", card, count=1)


def import_library() -> Any:
    """Return huggingface_hub, which takes a second to import; raise ValueError if it is not installed."""
    try:
        import huggingface_hub  # noqa: PLC0415
    except ImportError as error:
        raise ValueError(
            "The Hugging Face Hub needs the package huggingface_hub, which is not installed. Run: "
            "pip install 'convs2s[hub]'"
        ) from error
    return huggingface_hub
