"""Draws the diagrams of blocks in mermaid when the site is built: a reader needs no script for them."""

from __future__ import annotations

import hashlib
from typing import Any

import mermaidx
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

THE_SAME_IN_EACH = "my-svg"
"""The id that every drawing comes with, and its styles name."""


class Mermaid(Directive):
    """A block of mermaid's language becomes an SVG in the page."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        drawing = drawn("\n".join(self.content))
        return [nodes.raw("", f'<div class="diagram">{drawing}</div>', format="html")]


def drawn(source: str) -> str:
    """The SVG; its id is its own, for several stand in one page."""
    id = f"diagram-{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    return mermaidx.render(source).svg().replace(THE_SAME_IN_EACH, id)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("mermaid", Mermaid)
    app.config.myst_fence_as_directive.add("mermaid")
    return {"parallel_read_safe": True}
