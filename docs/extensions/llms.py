"""`llms.txt` and `llms-full.txt` beside the site's pages: what there is to read, for programs.

The form of the first is that of llmstxt.org: a title, what it is about, lists of links with a word on each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

LONGEST = 200
"""Characters said of a page."""


def write(app: Sphinx, error: Exception | None) -> None:
    """Both files, once all pages are there."""
    if error is not None or app.builder.name != "html":
        return
    out, environment = Path(app.outdir), app.env
    root = app.config.root_doc
    lines = [f"# {environment.titles[root].astext()}", "", f"> {_first_words(environment, root)}"]
    whole = [_source(environment, root)]
    for caption, pages in _parts(environment, root):
        lines += ["", f"## {caption}", ""]
        for page in pages:
            title = environment.titles[page].astext()
            text = f"_sources/{page}.md.txt"
            if not (out / text).is_file():
                raise ExtensionError(f"llms.txt leads to {text}, which is not there")
            lines.append(f"- [{title}]({text}): {_first_words(environment, page)}")
            whole.append(_source(environment, page))
    (out / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / "llms-full.txt").write_text("\n\n".join(whole), encoding="utf-8")


def _parts(environment: BuildEnvironment, root: str) -> Iterator[tuple[str, list[str]]]:
    """The captions of the first page, and the pages below each."""
    for part in environment.get_doctree(root).findall(toctree):
        yield str(part["caption"]), [str(page) for _, page in part["entries"]]


def _first_words(environment: BuildEnvironment, page: str) -> str:
    """The first paragraph, or as much of it as fits."""
    for paragraph in environment.get_doctree(page).findall(nodes.paragraph):
        words = re.sub(r"\s+", " ", paragraph.astext()).strip()
        return words if len(words) <= LONGEST else words[:LONGEST].rpartition(" ")[0] + " ..."
    return ""


def _source(environment: BuildEnvironment, page: str) -> str:
    return Path(environment.doc2path(page)).read_text(encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
