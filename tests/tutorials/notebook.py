"""The tutorial in docs/tutorials/notebook.md as a notebook: `python -m tests.tutorials.notebook`.

What the page says one sees is left out, because a notebook shows it, and so are links into the site, which
lead nowhere from where the notebook is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt

from tests.project import PROJECT

PAGE = PROJECT / "docs" / "tutorials" / "notebook.md"
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")


def notebook(page: str) -> str:
    """The page in the format of Jupyter: cells of Python, and all between them as Markdown."""
    cells: list[dict[str, Any]] = [
        {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        for number, (kind, text) in enumerate(_cells(page))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _cells(page: str) -> Iterator[tuple[str, str]]:
    lines, begin = page.splitlines(), 0
    for kind, content, first, behind in _taken(page):
        if words := "\n".join(lines[begin:first]).strip():
            yield "markdown", _LINK.sub(r"\1", words)
        if kind == "python":
            yield "code", content.rstrip("\n")
        begin = behind
    if words := "\n".join(lines[begin:]).strip():
        yield "markdown", _LINK.sub(r"\1", words)


def _taken(page: str) -> Iterator[tuple[str, str, int, int]]:
    """The blocks that are not Markdown of the notebook: language, content, first line, the line behind."""
    for token in MarkdownIt().parse(page):
        if token.type == "fence" and token.map and token.info in ("python", "text"):
            yield token.info, token.content, token.map[0], token.map[1]


if __name__ == "__main__":
    print(notebook(PAGE.read_text()), end="")
