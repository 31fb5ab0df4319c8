"""Sphinx's settings for the site of these pages; `make docs` builds it."""

import re

from sphinx.application import Sphinx

project = "convs2s"
author = "the authors of convs2s"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.programoutput"]
root_doc = "docs/README"
include_patterns = ["docs/*.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"]
exclude_patterns = [".venv", ".git", ".dvc", "data", "site"]  # else Sphinx walks through all their files

html_theme = "furo"
html_title = "convs2s"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
pygments_style = "default"

myst_heading_anchors = 3  # as GitHub names them
suppress_warnings = ["myst.header"]  # tables of contents are made below

default_role = "code"  # what docstrings have between single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"


def table_of_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Add to the index a table of contents for each of its sections: the pages that the section links to."""
    if name != app.config.root_doc:
        return
    for section in re.split(r"^## ", source[0], flags=re.MULTILINE)[1:]:
        pages = dict.fromkeys(re.findall(r"\]\(([\w./-]+)\.md(?:#[\w-]+)?\)", section))
        caption = section.partition("\n")[0]
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```\n"])


def name_pages_by_title(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links show the titles of pages and headings; on GitHub they show the names of files."""
    source[0] = re.sub(r"\[[\w/-]+\.md\]\(", "[](", source[0])


def plain_bars(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Let bars in docstrings, such as those of a length, be no substitutions of reStructuredText."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app: Sphinx) -> None:
    """Register the functions above."""
    app.connect("source-read", table_of_contents)
    app.connect("source-read", name_pages_by_title)
    app.connect("autodoc-process-docstring", plain_bars)
