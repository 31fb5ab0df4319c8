"""The README's paper map is true: every file exists and names its section."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def rows() -> list[tuple[str, str, str]]:
    """Return the rows of the map as (concept, section, file)."""
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


def test_every_module_of_the_model_that_names_a_section_is_on_the_map() -> None:
    """A concept of the paper has one file: add a row to the README, under "The paper, file by file"."""
    mapped = {file for _, _, file in rows()}
    named = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "convs2s" / "model").glob("*.py"))
        if "§" in path.read_text(encoding="utf-8").split("\n")[0]
    ]
    assert len(named) > 5
    assert set(named) <= mapped, f"not on the README's map: {sorted(set(named) - mapped)}"
