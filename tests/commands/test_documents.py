"""The commands of docs/documents.md, on small documents; those with pandoc only where it is installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages

_, DOCUMENTS, SUBTITLES = pages.blocks(pages.read("docs/documents.md"), "sh")
COMMANDS = re.split(r"\n\n", DOCUMENTS.strip())
MARKDOWN = """# A *house*

One **two** [three](x_y.html "z") `four` five.

- one
- two

| A | B |
|---|--:|
| one | 2 |

```python
print("four")
```
"""
CUES = (
    "1\n00:00:01,000 --> 00:00:02,500\nOne & two\nthree.\n\n"
    "2\n00:00:03,000 --> 00:00:04,000\n<i>One</i>\n\n"
    "3\n00:00:05,000 --> 00:00:06,000\n- One\n- {\\9}two\n– three\n"
)


def run(command: str, folder: Path) -> None:
    """Run a command of the page, in a folder where `convs2s` writes each word of a page in capitals."""
    (folder / "bin").mkdir()
    script = (
        "import re, sys\n"
        "from convs2s.html.segments import read_page\n"
        "for part in read_page(sys.stdin.read()):\n"
        "    if isinstance(part, str): sys.stdout.write(part)\n"
        "    else:\n"
        "        from convs2s.html.draft import Traced, TranslatedSentence, Word\n"
        "        from convs2s.html.inline_tags import write_segment\n"
        "        words = [Word(*word.span(), [word.start()]) for word in re.finditer(r'\\S+', part.text)]\n"
        "        whole = TranslatedSentence(0, len(part.text), Traced(part.text.upper(), words))\n"
        "        sys.stdout.write(write_segment(part, [whole], 'en'))\n"
    )
    (folder / "upper.py").write_text(script)
    program = folder / "bin" / "convs2s"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/upper.py\n")
    program.chmod(0o755)
    path = f"{folder}/bin:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(pages.ROOT)}
    subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, check=True)


def test_subtitles_keep_numbers_times_and_tags(tmp_path: Path) -> None:
    """A player needs them; a blank line ends each cue. Who speaks has a line."""
    (tmp_path / "source.srt").write_text(CUES)
    run(SUBTITLES, tmp_path)
    first, second, third = (tmp_path / "target.srt").read_text().rstrip().split("\n\n")
    assert first == "1\n00:00:01,000 --> 00:00:02,500\nONE & TWO THREE."
    assert second == "2\n00:00:03,000 --> 00:00:04,000\n<i>ONE</i>"
    assert third == "3\n00:00:05,000 --> 00:00:06,000\n- ONE\n- {\\9}TWO\n– THREE"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split("\n")[0].strip("# "))
def test_documents_go_through_pandoc(command: str, tmp_path: Path) -> None:
    """Each keeps what is no text, and has the translated words."""
    if shutil.which("pandoc") is None:
        pytest.skip("needs pandoc")
    [source] = re.findall(r"source\.(?!docx -o|odt -o)(\w+)", command)[:1]
    (tmp_path / "source.md").write_text(MARKDOWN)
    if source != "md":
        written = "commonmark" if source == "txt" else source
        options = ["-t", written] if source == "txt" else []
        subprocess.run(["pandoc", "source.md", *options, "-o", f"source.{source}"], cwd=tmp_path, check=True)
    run(command, tmp_path)
    shown = ["pandoc", f"target.{source}", "-t", "markdown", "--wrap=none"]
    if source == "txt":
        shown = ["cat", "target.txt"]
    text = subprocess.run(shown, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "FIVE." in text and "- " in text and "2" in text
    if source != "txt":
        assert "**TWO**" in text and "[THREE](x_y.html" in text and "`four`" in text
    if source != "odt":  # where pandoc takes code for text
        assert 'print("four")' in text
