"""The README's paper map is true: every file is there and names its section."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def rows() -> list[tuple[str, str, str]]:
    """Return (concept, section, file) of the map."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("## The paper, file by file")[1].split("\n## ")[0]
    return re.findall(r"^\| ([^|]+) \| (§[^|]+) \| `([^`]+)` \|$", table, re.MULTILINE)


def test_every_file_of_the_map_names_its_section() -> None:
    """A reader who follows the map finds the section's number in the file."""
    assert len(rows()) >= 15
    for concept, sections, file in rows():
        path = ROOT / file
        assert path.is_file(), f"{concept}: {file} does not exist"
        text = path.read_text(encoding="utf-8")
        for section in re.findall(r"[\d.]+|App\. \w", sections):
            assert section.rstrip(".") in text, f"{file} does not name {section}"


def test_every_module_of_model_and_train_is_on_the_map_or_storage() -> None:
    """A concept of the paper has one file, and a file of the model a concept."""
    mapped = {file for _, _, file in rows()}
    for path in sorted((ROOT / "convs2s" / "model").glob("*.py")):
        if path.name not in {"__init__.py", "loading.py", "storage.py", "unfilled.py"}:
            assert str(path.relative_to(ROOT)) in mapped, path
