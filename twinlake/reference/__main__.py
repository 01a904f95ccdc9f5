"""Writes the reference pages of docs/: `python -m twinlake.reference`.

The notebook is made by `tests.tutorials.notebook`, the editors' schemas by `twinlake editor-schemas`;
`make docs` writes all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from twinlake.config.library import LIBRARY
from twinlake.config.settings_example import in_page
from twinlake.reference import api, commands, contracts, definitions, json_output, measures, metrics

DOCS = LIBRARY.parent / "docs"


def settings() -> str:
    """docs/settings.md, which people write, with the example of every key as it is now."""
    return in_page((DOCS / "settings.md").read_text())


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api.text,
    "commands.md": commands.text,
    "contracts.md": contracts.text,
    "definitions.md": definitions.text,
    "json.md": json_output.text,
    "measures.md": measures.text,
    "metrics.md": metrics.text,
    "settings.md": settings,
}
"""By its name in docs/, what makes the text of a page."""


def main() -> None:
    made = {name: text() for name, text in PAGES.items()}  # all of them before one is written
    for name, text in made.items():
        (DOCS / name).write_text(text)


if __name__ == "__main__":
    main()
