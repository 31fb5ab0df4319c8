"""Model folders on the Hugging Face Hub, through its own library, which the extra `hub` installs."""

from pathlib import Path


def locate(folder: str | Path) -> Path:
    """Return a model folder, fetching hf:OWNER/NAME or hf:OWNER/NAME@REVISION from the Hub or its cache.

    Raises:
        OSError: if there is no such repository, or no network and no copy in the cache.
        ValueError: if the name is malformed, or huggingface_hub is not installed.
    """
    prefix, _, repository = str(folder).partition(":")
    if prefix != "hf":
        return Path(folder)
    name, _, revision = repository.partition("@")
    if "/" not in name:
        raise ValueError(f"expected hf:OWNER/NAME or hf:OWNER/NAME@REVISION, found {folder}.")
    try:
        import huggingface_hub  # noqa: PLC0415  # takes a second
    except ImportError as error:
        raise ValueError(
            f"{folder}: the Hugging Face Hub needs huggingface_hub. Run: pip install 'convs2s[hub]'"
        ) from error
    return Path(huggingface_hub.snapshot_download(name, revision=revision or None))
